//go:build unix

package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// foreign is a file that belongs to another user.
type foreign struct{ fs.FileInfo }

func (f foreign) Sys() any { return &syscall.Stat_t{Uid: uint32(os.Geteuid()) + 1} }

func TestTokenOfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokenFile)
	if err := os.WriteFile(path, []byte(newTokenText()), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPrivate(path, info); err != nil {
		t.Error(err)
	}
	if err := checkPrivate(path, foreign{info}); !errors.Is(err, ErrTokenOwner) {
		t.Errorf("error %v", err)
	}
}
