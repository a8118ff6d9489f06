//go:build linux

// Package powerloss tests what the event log has after a loss of power. Below SQLite it puts a
// disk that knows what was synced, and makes pictures of what would be left if the power went
// at that moment.
//
//	sqlitelog ─▶ SQLite ─▶ shim ─▶ unix VFS ─▶ files, as the process sees them
//	                        └────▶ disk: what was synced, and what came after ─▶ picture
package powerloss

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

func TestMain(m *testing.M) {
	if err := install(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

type (
	vfs     = sqlite3.Tsqlite3_vfs
	methods = sqlite3.Tsqlite3_io_methods

	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, n int32, off int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// unix is the VFS below the shim.
var unix uintptr

// open is what is known of the files that SQLite has open on a disk, by the address of its
// sqlite3_file.
var open = struct {
	sync.Mutex
	files   map[uintptr]*handle
	methods map[uintptr]uintptr // the shim's tables by those of the unix VFS
}{files: make(map[uintptr]*handle), methods: make(map[uintptr]uintptr)}

type handle struct {
	disk *disk
	name string
	file *file
	unix *methods
	told int // failed syncs of the file that this handle knows of; the disk's
}

// install makes the shim SQLite's default VFS, so that every connection of the process goes
// through it. Files that are on no disk it hands on untouched.
func install() error {
	tls := libc.NewTLS()
	defer tls.Close()
	if unix = sqlite3.Xsqlite3_vfs_find(tls, 0); unix == 0 {
		return fmt.Errorf("SQLite has no VFS")
	}
	name, err := libc.CString("powerloss")
	if err != nil {
		return err
	}
	shim := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(vfs{}))) // kept for ever, like name
	if shim == 0 {
		return fmt.Errorf("no memory")
	}
	v := at[vfs](shim)
	*v = *at[vfs](unix)
	v.FzName, v.FpNext = name, 0
	v.FxOpen, v.FxDelete = pointer[openFunc](shimOpen), pointer[deleteFunc](shimDelete)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, shim, 1); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register VFS: %d", rc)
	}
	return nil
}

// at returns what is at an address outside Go's memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer returns a function that is never collected as SQLite knows it.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function is the reverse of pointer.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

func shimOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	next := function[openFunc](at[vfs](unix).FxOpen)
	if name == 0 {
		return next(tls, unix, name, file, flags, out)
	}
	path := libc.GoString(name)
	d := diskOf(path)
	if d == nil {
		return next(tls, unix, name, file, flags, out)
	}
	base := filepath.Base(path)
	if rc := d.ask(call{opOpen, base}); rc != sqlite3.SQLITE_OK {
		at[sqlite3.Tsqlite3_file](file).FpMethods = 0
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	rc := next(tls, unix, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK {
		return rc
	}
	open.Lock()
	defer open.Unlock()
	f := at[sqlite3.Tsqlite3_file](file)
	h := &handle{disk: d, name: base, file: d.opened(base), unix: at[methods](f.FpMethods)}
	h.told = h.file.failures
	open.files[file] = h
	f.FpMethods = shimMethods(tls, f.FpMethods)
	return sqlite3.SQLITE_OK
}

// shimMethods returns a copy of a table of methods, with those of the shim in it.
func shimMethods(tls *libc.TLS, of uintptr) uintptr {
	if p := open.methods[of]; p != 0 {
		return p
	}
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(methods{})))
	m := at[methods](p)
	*m = *at[methods](of)
	m.FxClose = pointer[closeFunc](shimClose)
	m.FxWrite = pointer[writeFunc](shimWrite)
	m.FxTruncate = pointer[truncateFunc](shimTruncate)
	m.FxSync = pointer[syncFunc](shimSync)
	open.methods[of] = p
	return p
}

func handleOf(file uintptr) *handle {
	open.Lock()
	defer open.Unlock()
	return open.files[file]
}

func shimClose(tls *libc.TLS, file uintptr) int32 {
	open.Lock()
	h := open.files[file]
	delete(open.files, file)
	open.Unlock()
	return function[closeFunc](h.unix.FxClose)(tls, file)
}

func shimWrite(tls *libc.TLS, file, data uintptr, n int32, off int64) int32 {
	h := handleOf(file)
	rc := h.disk.ask(call{opWrite, h.name})
	if rc != sqlite3.SQLITE_OK {
		n /= 2 // what a full disk or a bad sector has taken before it failed
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if n == 0 {
		return rc
	}
	if got := function[writeFunc](h.unix.FxWrite)(tls, file, data, n, off); got != sqlite3.SQLITE_OK {
		return got
	}
	h.file.write(off, unsafe.Slice(at[byte](data), n))
	return rc
}

func shimTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	if rc := h.disk.ask(call{opTruncate, h.name}); rc != sqlite3.SQLITE_OK {
		return rc
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	rc := function[truncateFunc](h.unix.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		h.file.truncate(size)
	}
	return rc
}

// syncDir is the flag of a unixFile whose first sync is also one of its directory.
const syncDir = 0x08

// shimSync does not ask the unix VFS: what is durable here, only the disk knows.
func shimSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	h := handleOf(file)
	rc := h.disk.ask(call{opSync, h.name})
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if rc != sqlite3.SQLITE_OK {
		h.disk.failed(h)
		return rc
	}
	u := at[sqlite3.TunixFile](file)
	h.disk.sync(h.file, u.FctrlFlags&syncDir != 0)
	u.FctrlFlags &^= syncDir
	if h.told < h.file.failures {
		h.told = h.file.failures
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

func shimDelete(tls *libc.TLS, _, name uintptr, dirSync int32) int32 {
	next := function[deleteFunc](at[vfs](unix).FxDelete)
	path := libc.GoString(name)
	d := diskOf(path)
	if d == nil {
		return next(tls, unix, name, dirSync)
	}
	base := filepath.Base(path)
	if rc := d.ask(call{opDelete, base}); rc != sqlite3.SQLITE_OK {
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	rc := next(tls, unix, name, 0)
	if rc == sqlite3.SQLITE_OK {
		d.deleted(base, dirSync != 0)
	}
	return rc
}
