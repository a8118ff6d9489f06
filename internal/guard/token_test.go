package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLoadTokenMakesOneAndKeepsIt(t *testing.T) {
	dir := t.TempDir()
	first, created, err := LoadToken(dir)
	if err != nil || !created || !validToken(first.Reveal()) {
		t.Fatalf("created %v: %v", created, err)
	}
	again, created, err := LoadToken(dir)
	if err != nil || created || again.Reveal() != first.Reveal() {
		t.Errorf("the second time: created %v: %v", created, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files left: %v %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	other, _, err := LoadToken(t.TempDir())
	if err != nil || other.Reveal() == first.Reveal() {
		t.Error("two tokens are the same")
	}
}

func TestLoadTokenAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		tokens  = map[string]bool{}
		created int
	)
	for range 16 {
		wg.Go(func() {
			token, made, err := LoadToken(dir)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			tokens[token.Reveal()] = true
			if made {
				created++
			}
		})
	}
	wg.Wait()
	if len(tokens) != 1 || created != 1 {
		t.Errorf("%d tokens, %d made", len(tokens), created)
	}
}

func TestLoadTokenRefuses(t *testing.T) {
	good := newTokenText()
	file := func(text string, mode fs.FileMode) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
	}{
		{"readable by all", file(good, 0o644), ErrTokenMode},
		{"readable by the group", file(good, 0o640), ErrTokenMode},
		{"writable by others", file(good, 0o602), ErrTokenMode},
		{"empty", file("", 0o600), ErrTokenContent},
		{"prefix only", file(tokenPrefix, 0o600), ErrTokenContent},
		{"short", file(good[:len(good)-2], 0o600), ErrTokenContent},
		{"two lines", file(good+"\n"+good, 0o600), ErrTokenContent},
		{"space", file(good+" ", 0o600), ErrTokenContent},
		{"line break inside", file(good[:20]+"\n"+good[20:], 0o600), ErrTokenContent},
		{"huge", file(strings.Repeat(good, 10_000), 0o600), ErrTokenContent},
		{"directory", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, ErrTokenFile},
		{"link", func(t *testing.T, path string) {
			t.Helper()
			file(good, 0o600)(t, path+".real")
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
		}, ErrTokenFile},
		{"dangling link", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Symlink(path+".nowhere", path); err != nil {
				t.Fatal(err)
			}
		}, ErrTokenFile},
	} {
		path := filepath.Join(t.TempDir(), TokenFile)
		tc.make(t, path)
		token, created, err := LoadToken(filepath.Dir(path))
		if !errors.Is(err, tc.want) || created || !token.isZero() {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err != nil && strings.Contains(err.Error(), good[6:]) {
			t.Errorf("%s: the error shows the token", tc.name)
		}
	}
	if _, _, err := LoadToken(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

func TestTokenNeverPrints(t *testing.T) {
	token, _, err := LoadToken(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("token", slog.Any("token", token))
	js, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(js)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, verb, token)
		fmt.Fprintf(&out, verb, Options{Token: token})
		fmt.Fprintf(&out, verb, struct{ t Token }{token})
	}
	for _, leak := range []string{token.Reveal(), fmt.Sprintf("%x", token.Reveal())} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("printed: %s", out.String())
		}
	}
}

func TestTokenStays(t *testing.T) {
	dir, sync := t.TempDir(), syncDir
	defer func() { syncDir = sync }()
	durable := false
	syncDir = func(path string) error {
		_, err := os.Stat(filepath.Join(path, TokenFile))
		durable = err == nil && path == dir
		return sync(path)
	}
	if _, created, err := LoadToken(dir); err != nil || !created || !durable {
		t.Errorf("created %v, durable %v: %v", created, durable, err)
	}
}
