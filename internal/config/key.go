package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"
)

const (
	maxKey     = 64 << 10         // bytes; keys made of signed claims have a few thousand
	keyTimeout = 30 * time.Second // for a key command: time enough to unlock a password store
)

// ErrNoKey means that the place of a key holds none.
var ErrNoKey = errors.New("key is empty")

var errKeyText = errors.New("key has characters that cannot be in a header")

// Key is where a provider's key comes from: the configuration, a file or a command. Files
// and commands are read when the key is first needed, and their answer is kept. Safe for
// concurrent use.
type Key struct {
	file    string
	command []string // program and arguments

	turn  chan struct{} // held while the key is fetched; guards value
	value Secret
}

func newKey(text string) *Key        { return &Key{turn: make(chan struct{}, 1), value: NewSecret(text)} }
func keyFromFile(path string) *Key   { return &Key{turn: make(chan struct{}, 1), file: path} }
func keyFromCommand(c []string) *Key { return &Key{turn: make(chan struct{}, 1), command: c} }

// Value returns the key, without spaces around it. The first call may read a file or run a
// command, for at most 30 s; calls at the same time wait for it. Failures are not kept, so
// a later call tries again. The nil Key has the empty value. Errors hold neither the key
// nor any output of the command.
func (k *Key) Value(ctx context.Context) (Secret, error) {
	if k == nil {
		return Secret{}, nil
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return Secret{}, ctx.Err()
	}
	if !k.value.IsZero() {
		return k.value, nil
	}
	data, err := k.fetch(ctx)
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", k, err)
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return Secret{}, fmt.Errorf("%s: %w", k, ErrNoKey)
	}
	if !headerText(string(data)) {
		return Secret{}, fmt.Errorf("%s: %w", k, errKeyText)
	}
	k.value = NewSecret(string(data))
	return k.value, nil
}

func (k *Key) fetch(ctx context.Context) ([]byte, error) {
	if k.file != "" {
		data, _, err := readRegular(k.file, maxKey)
		return data, err
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	out := &cappedBuffer{full: cancel}
	cmd := exec.CommandContext(ctx, k.command[0], k.command[1:]...)
	cmd.Stdout = out
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	err := cmd.Run()
	switch {
	case out.over:
		return nil, fmt.Errorf("output: %w: at most %d bytes are read", errTooLarge, maxKey)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("gave no key in time: %w", ctx.Err())
	case err != nil:
		return nil, err
	}
	return out.kept.Bytes(), nil
}

// String says where the key comes from, never what it is.
func (k *Key) String() string {
	switch {
	case k == nil:
		return "no key"
	case k.file != "":
		return "key file " + k.file
	case len(k.command) > 0:
		return "key command " + k.command[0]
	}
	return "key in the configuration"
}

// GoString is String.
func (k *Key) GoString() string { return k.String() }

// MarshalText is String, so that no encoder looks inside.
func (k *Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue is String.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// cappedBuffer is a buffer of at most maxKey bytes. More than that is dropped, and calls
// full, which stops the program: it would wait for a reader for ever.
type cappedBuffer struct {
	kept bytes.Buffer // not embedded: its ReadFrom would pass by Write
	over bool
	full func()
}

// Write adds p, or drops it when that would be too much. It never fails.
func (b *cappedBuffer) Write(p []byte) (int, error) {
	if b.over || b.kept.Len()+len(p) > maxKey {
		b.over = true
		b.full()
		return len(p), nil
	}
	return b.kept.Write(p)
}
