//go:build linux

package powerloss

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// op is a call of SQLite that changes something on a disk.
type op uint8

const (
	opOpen op = iota // of a file that may be new
	opWrite
	opTruncate
	opSync
	opDelete
)

func (o op) String() string { return [...]string{"open", "write", "truncate", "sync", "delete"}[o] }

type call struct {
	op   op
	name string // of the file, without its directory
}

// disk is what would be left of a directory after a loss of power. A file's content is durable
// once the file was synced, and names are once the directory was.
type disk struct {
	dir string

	mu     sync.Mutex // also held while a file is changed, so that a picture is of one moment
	asked  func(call) int32
	random *rand.Rand
	lies   bool // syncs succeed and do nothing
	names  map[string]*file
	synced map[string]*file // the names that are durable
	moves  []move           // since then
}

// move gives a name to a file or, without one, takes it away.
type move struct {
	name string
	file *file
}

// file is the content of a file: what is durable, and what came after.
type file struct {
	durable  []byte
	changes  []change
	failures int // syncs that have failed
}

// change is a write or, without data, a new size.
type change struct {
	off  int64
	data []byte
}

var disks struct {
	sync.Mutex
	byDir map[string]*disk
}

func diskOf(path string) *disk {
	disks.Lock()
	defer disks.Unlock()
	return disks.byDir[filepath.Dir(path)]
}

// plug puts a disk below the directory dir, as long as the test runs. What is in it is durable.
func plug(t *testing.T, dir string, random *rand.Rand) *disk {
	t.Helper()
	d := &disk{dir: dir, random: rand.New(rand.NewPCG(random.Uint64(), 0)), names: make(map[string]*file)}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || strings.HasSuffix(path, "-shm") {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d.names[filepath.Base(path)] = &file{durable: content}
	}
	d.synced = maps.Clone(d.names)
	disks.Lock()
	defer disks.Unlock()
	if disks.byDir == nil {
		disks.byDir = make(map[string]*disk)
	}
	disks.byDir[dir] = d
	t.Cleanup(func() { unplug(dir) }) // which must not keep the disk in memory until then
	return d
}

// unplug may be called again.
func unplug(dir string) {
	disks.Lock()
	defer disks.Unlock()
	delete(disks.byDir, dir)
}

// intercept has f called before each call. It may block, and returns SQLITE_OK or the error that
// the call ends with.
func (d *disk) intercept(f func(call) int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = f
}

func (d *disk) ask(c call) int32 {
	d.mu.Lock()
	f := d.asked
	d.mu.Unlock()
	if f == nil {
		return 0
	}
	return f(c)
}

// opened returns the file of a name. One that is not known was made a moment ago.
func (d *disk) opened(name string) *file {
	if d.names[name] == nil {
		d.names[name] = &file{}
		d.moves = append(d.moves, move{name, d.names[name]})
	}
	return d.names[name]
}

func (d *disk) deleted(name string, syncDir bool) {
	delete(d.names, name)
	d.moves = append(d.moves, move{name: name})
	if syncDir && !d.lies {
		d.syncNames()
	}
}

func (d *disk) sync(f *file, syncDir bool) {
	if d.lies {
		return
	}
	for _, c := range f.changes {
		f.durable = c.apply(f.durable)
	}
	f.changes = nil
	if syncDir {
		d.syncNames()
	}
}

func (d *disk) syncNames() {
	d.synced, d.moves = maps.Clone(d.names), nil
}

// failed is a sync that ended with an error. Linux then takes what it could not write for
// written: some of it is on the disk, and the rest never gets there unless it is written again.
// It tells each open file of the error once, with its next sync.
func (d *disk) failed(h *handle) {
	f := h.file
	f.durable, f.changes = f.torn(d.random), nil
	f.failures++
	h.told = f.failures
}

func (f *file) write(off int64, data []byte) {
	f.changes = append(f.changes, change{off, slices.Clone(data)})
}

func (f *file) truncate(size int64) { f.changes = append(f.changes, change{off: size}) }

func (c change) apply(content []byte) []byte {
	if c.data == nil {
		return resize(content, c.off, nil)
	}
	content = resize(content, max(int64(len(content)), c.off+int64(len(c.data))), nil)
	copy(content[c.off:], c.data)
	return content
}

// resize cuts content, or makes it longer by what fill gives, or zeros.
func resize(content []byte, size int64, fill func([]byte)) []byte {
	n := int64(len(content))
	if size <= n {
		return content[:size]
	}
	content = append(content, make([]byte, size-n)...)
	if fill != nil {
		fill(content[n:])
	}
	return content
}

// save writes a picture into an empty directory.
func (p picture) save(dir string) error {
	for name, content := range p {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
