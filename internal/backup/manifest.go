// Package backup copies a data directory, also while a server works in it, and makes a new data
// directory from a copy. A backup is a directory of its own:
//
//	DEST/manifest.json   what belongs to it, each file with its size and SHA-256; written last
//	     roost.db        the event log as it was at one moment
//	     blobs/ outputs/ as in the data directory: all that the event log refers to
//	     server-id grants.json trust.json
//
// The token and the logins of MCP servers are not in it: a backup travels, and they open doors.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

const (
	// format is the form that backups are written in. Restore refuses newer ones.
	format = 1
	// manifestName is the name of the manifest.
	manifestName = "manifest.json"
	// maxManifest bounds a manifest that is read, in bytes.
	maxManifest = 512 << 20
)

var (
	// ErrNoBackup says that a directory is not a finished backup.
	ErrNoBackup = errors.New("not a finished backup: it has no " + manifestName)
	// ErrNewer says that a newer roost has made the backup.
	ErrNewer = errors.New("the backup was made by a newer roost: use that version")
	// ErrDamaged says that a backup is not as it was made.
	ErrDamaged = errors.New("the backup is damaged: use another one")
	// ErrNotEmpty says that a place where something is to be made is taken.
	ErrNotEmpty = errors.New("it exists already, and nothing is overwritten: choose another place")
)

// files are the files of the data directory, besides the database, that a backup has, and trees
// the directories.
var (
	files = []string{"server-id", "grants.json", "trust.json"}
	trees = []string{"blobs", "outputs"}
)

// Manifest says what a backup is.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the roost that has made it
	MadeAt  time.Time `json:"made_at"`
	Files   []File    `json:"files"` // sorted by path
}

// File is a file of a backup.
type File struct {
	Path   string `json:"path"` // with slashes, from the backup's directory
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files together.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// readManifest reads and checks a manifest. What it says is not believed: a path leads nowhere
// but to what a backup may have.
func readManifest(root *os.Root) (*Manifest, error) {
	f, err := root.Open(manifestName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoBackup
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%w (%s: %w)", ErrDamaged, manifestName, err)
	}
	if m.Format > format {
		return nil, fmt.Errorf("%w (its format is %d, this one knows up to %d)", ErrNewer, m.Format, format)
	}
	database := false
	for _, f := range m.Files {
		if !allowed(f.Path) {
			return nil, fmt.Errorf("%w (%s names %.80q)", ErrDamaged, manifestName, f.Path)
		}
		database = database || f.Path == sqlitelog.FileName
	}
	if !database {
		return nil, fmt.Errorf("%w (%s names no %s)", ErrDamaged, manifestName, sqlitelog.FileName)
	}
	return &m, nil
}

func allowed(name string) bool {
	if name == sqlitelog.FileName || slices.Contains(files, name) {
		return true
	}
	top, _, below := strings.Cut(name, "/")
	return below && slices.Contains(trees, top) && path.Clean(name) == name && filepath.IsLocal(filepath.FromSlash(name))
}

// write adds the manifest to a backup and makes it durable.
func (m *Manifest) write(root *os.Root) error {
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	f, err := root.OpenFile(manifestName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// copier copies files of one directory to another, and says what it has copied.
type copier struct {
	from, to *os.Root
	synced   map[string]bool // the directories that have new names
}

// copy copies a file, which must not be there yet, as target; the copy is durable once sync has
// been called. A file that grows meanwhile is copied as long as it was at the beginning.
func (c *copier) copy(name, target string) (File, error) {
	from, err := c.from.Open(filepath.FromSlash(name))
	if err != nil {
		return File{}, err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return File{}, err
	}
	if dir := path.Dir(target); dir != "." {
		if err := c.to.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return File{}, err
		}
	}
	c.note(target)
	to, err := c.to.OpenFile(filepath.FromSlash(target), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, info.Size()))
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return File{}, err
	}
	return File{Path: name, Size: n, SHA256: digits(sum)}, nil
}

// note remembers the directories in which a file has got a name.
func (c *copier) note(target string) {
	if c.synced == nil {
		c.synced = make(map[string]bool)
	}
	for dir := path.Dir(target); ; dir = path.Dir(dir) {
		c.synced[dir] = true
		if dir == "." {
			return
		}
	}
}

// sync makes the names of what was copied durable.
func (c *copier) sync() error {
	for dir := range c.synced {
		f, err := c.to.Open(filepath.FromSlash(dir))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func digits(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }
