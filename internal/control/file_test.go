package control

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

func TestAFileHasALimit(t *testing.T) {
	f := &file{ctx: t.Context()}
	if _, err := f.Write(make([]byte, maxFile)); err != nil {
		t.Fatal(err)
	}
	_, err := f.Write([]byte("x"))
	if e := session.AsError(fmt.Errorf("page: %w", err)); e.Kind != session.TooLarge {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&file{ctx: ctx}).Write([]byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}
