package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/blob"
)

func openDir(t *testing.T, path string) *blob.Dir {
	t.Helper()
	d, err := blob.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func put(t *testing.T, s blob.Store, data []byte) string {
	t.Helper()
	hash, err := s.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestContract holds for every store.
func TestContract(t *testing.T) {
	for name, open := range map[string]func(*testing.T) blob.Store{
		"Dir":    func(t *testing.T) blob.Store { return openDir(t, filepath.Join(t.TempDir(), "blobs")) },
		"Memory": func(*testing.T) blob.Store { return &blob.Memory{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("PutThenGet", func(t *testing.T) { putThenGet(t, open(t)) })
			t.Run("Limits", func(t *testing.T) { limits(t, open(t)) })
			t.Run("ManyAtOnce", func(t *testing.T) { manyAtOnce(t, open(t)) })
			t.Run("EndedContext", func(t *testing.T) { endedContext(t, open(t)) })
		})
	}
}

func putThenGet(t *testing.T, s blob.Store) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	data := []byte("abc")
	if hash := put(t, s, data); hash != abc || hash != blob.Hash(data) || put(t, s, data) != abc {
		t.Fatalf("hash %s", hash)
	}
	data[0] = 'x' // stores keep nothing of the caller's
	for range 2 {
		got, err := s.Get(t.Context(), abc)
		if err != nil || string(got) != "abc" {
			t.Fatalf("%q %v", got, err)
		}
		got[1] = 'x'
	}
	if got, err := s.Get(t.Context(), put(t, s, nil)); err != nil || len(got) != 0 {
		t.Fatalf("empty blob: %q %v", got, err)
	}
}

func limits(t *testing.T, s blob.Store) {
	big := make([]byte, blob.MaxSize+1)
	if _, err := s.Put(t.Context(), big); !errors.Is(err, blob.ErrTooLarge) {
		t.Fatalf("put: %v", err)
	}
	if got, err := s.Get(t.Context(), put(t, s, big[1:])); err != nil || !bytes.Equal(got, big[1:]) {
		t.Fatal(err)
	}
	valid := blob.Hash([]byte("nothing"))
	if _, err := s.Get(t.Context(), valid); !errors.Is(err, blob.ErrNotFound) {
		t.Fatalf("get: %v", err)
	}
	for _, hash := range []string{"", "abc", valid[1:], valid + "0", strings.ToUpper(valid), "../" + valid[3:], strings.Repeat("/", 64), strings.Repeat("\x00", 64)} {
		if _, err := s.Get(t.Context(), hash); !errors.Is(err, blob.ErrInvalidHash) {
			t.Errorf("get %q: %v", hash, err)
		}
	}
}

func manyAtOnce(t *testing.T, s blob.Store) {
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			data := fmt.Appendf(nil, "blob %d", i%8)
			hash, err := s.Put(t.Context(), data)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := s.Get(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%q %v", got, err)
			}
		})
	}
	wg.Wait()
}

func endedContext(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hash := blob.Hash([]byte("x"))
	if _, err := s.Put(ctx, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, hash); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), hash); !errors.Is(err, blob.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestDirKeepsBlobsAndRemovesLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	hash := put(t, openDir(t, path), []byte("kept"))
	leftover := filepath.Join(path, "put-123")
	if err := os.WriteFile(leftover, []byte("ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := openDir(t, path).Get(t.Context(), hash); err != nil || string(got) != "kept" {
		t.Fatalf("%q %v", got, err)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the leftover is still there: %v", err)
	}
}

func TestDirIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	put(t, openDir(t, path), []byte("secret"))
	files := 0
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o700)
		if !d.IsDir() {
			files++
			want = 0o600
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
		return nil
	})
	if err != nil || files != 1 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestDirNoticesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	d := openDir(t, path)
	for name, damage := range map[string]string{"changed": "xepe", "cut": "", "longer": "kept and more"} {
		t.Run(name, func(t *testing.T) {
			hash := put(t, d, []byte("kept"))
			if err := os.WriteFile(filepath.Join(path, hash[:2], hash), []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Get(t.Context(), hash); !errors.Is(err, blob.ErrCorrupt) {
				t.Fatal(err)
			}
			put(t, d, []byte("kept"))
			if got, err := d.Get(t.Context(), hash); err != nil || string(got) != "kept" {
				t.Fatalf("put again: %q %v", got, err)
			}
		})
	}
}

func TestFailedPutLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	d := openDir(t, path)
	hash := blob.Hash([]byte("x"))
	// A directory in the blob's place makes the rename fail.
	if err := os.MkdirAll(filepath.Join(path, hash[:2], hash, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(t.Context(), []byte("x")); err == nil {
		t.Fatal("put succeeded")
	}
	left, err := filepath.Glob(filepath.Join(path, "put-*"))
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	if _, err := blob.OpenDir(filepath.Join(path, "no", "parent")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open without parent: %v", err)
	}
}

func FuzzValidHash(f *testing.F) {
	f.Add(blob.Hash(nil))
	f.Add("../../etc/passwd")
	f.Fuzz(func(t *testing.T, hash string) {
		if blob.ValidHash(hash) && (len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "") {
			t.Fatalf("%q is accepted", hash)
		}
	})
}

func TestLookDirChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	if hashes, strays, err := blob.LookDir(path).List(); err != nil || len(hashes)+len(strays) > 0 {
		t.Fatalf("without a directory: %v %v %v", hashes, strays, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory was made: %v", err)
	}
	hash := put(t, openDir(t, path), []byte("kept"))
	// One is being written, and two are in the wrong place.
	half, lost, odd := filepath.Join(path, "put-1"), filepath.Join(path, hash), filepath.Join(path, hash[:2], "odd")
	for _, name := range []string{half, lost, odd} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := blob.LookDir(path)
	hashes, strays, err := d.List()
	slices.Sort(strays)
	want := []string{half, lost, odd}
	slices.Sort(want)
	if err != nil || !slices.Equal(hashes, []string{hash}) || !slices.Equal(strays, want) {
		t.Errorf("%v %v %v", hashes, strays, err)
	}
	if got, err := d.Get(t.Context(), hash); err != nil || string(got) != "kept" {
		t.Errorf("%q %v", got, err)
	}
}

// TestPutStays loses the power as soon as a blob is put, also one that was put before.
func TestPutStays(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "blobs")
	data := []byte("some bytes")
	hash := blob.Hash(data)
	for range 2 {
		durable := make(map[string]bool) // paths whose names were synced
		blob.OnSync(t, func(path string) {
			entries, err := os.ReadDir(path)
			if err != nil {
				t.Error(err)
			}
			for _, e := range entries {
				durable[filepath.Join(path, e.Name())] = true
			}
		})
		put(t, openDir(t, dir), data)
		for p := filepath.Join(dir, hash[:2], hash); p != base; p = filepath.Dir(p) {
			if !durable[p] {
				t.Errorf("%s is lost with the power", p)
			}
		}
	}
}
