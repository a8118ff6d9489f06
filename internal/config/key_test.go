package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k := keyFromFile(path)
	if _, err := k.Value(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	for text, want := range map[string]error{"\n": ErrNoKey, "hunter2\nhunter2\n": errKeyText, strings.Repeat("a", maxKey+1): errTooLarge} {
		write(t, path, text)
		if _, err := k.Value(t.Context()); !errors.Is(err, want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	write(t, path, " sk-1\r\n") // failures were not kept
	for range 2 {
		if s, err := k.Value(t.Context()); err != nil || s.Reveal() != "sk-1" {
			t.Errorf("key: %v", err)
		}
		write(t, path, "sk-2") // the answer was
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeyCommandRunsOnce(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "runs")
	k := keyFromCommand([]string{"sh", "-c", `echo run >> "$1"; echo sk-1`, "sh", counter})
	if _, err := os.Stat(counter); err == nil {
		t.Error("the command ran before it was needed")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if s, err := k.Value(t.Context()); err != nil || s.Reveal() != "sk-1" {
				t.Errorf("key: %v", err)
			}
		})
	}
	wg.Wait()
	if data, err := os.ReadFile(counter); err != nil || string(data) != "run\n" {
		t.Errorf("the command ran %d times", strings.Count(string(data), "run"))
	}
}

func TestKeyCommandFailures(t *testing.T) {
	for script, want := range map[string]string{
		"echo hunter2 >&2; echo hunter2; exit 3": "exit status 3",
		"true":                                   "key is empty",
		"yes hunter2":                            "too large",
	} {
		_, err := keyFromCommand([]string{"sh", "-c", script}).Value(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", script, err)
		}
	}
	if _, err := keyFromCommand([]string{"/no/such/program"}).Value(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing program: %v", err)
	}
}

func TestKeyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	k := keyFromCommand([]string{"sleep", "60"})
	var wg sync.WaitGroup
	for range 3 { // one runs the command, the others wait for it
		wg.Go(func() {
			if _, err := k.Value(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
	wg.Wait()
}

func TestNoKey(t *testing.T) {
	var k *Key
	if s, err := k.Value(t.Context()); err != nil || !s.IsZero() || k.String() != "no key" {
		t.Errorf("%v %v", s, err)
	}
}
