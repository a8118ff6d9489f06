package guard

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the name of the token's file in the data directory.
const TokenFile = "token"

const (
	tokenPrefix = "roost_"
	tokenBytes  = 32
	redacted    = "[redacted]"
)

// Errors of [LoadToken]. Their text says what to do.
var (
	ErrTokenMode    = errors.New("other users may read the token")
	ErrTokenOwner   = errors.New("the token's file belongs to another user; remove it, and a new one is made")
	ErrTokenFile    = errors.New("the token's file is not a regular file; remove it, and a new one is made")
	ErrTokenContent = errors.New("the token's file holds no token; remove it, and a new one is made")
)

// Token is the secret that opens the HTTP listener: "roost_" and 32 random bytes in
// base64url. Every way to print it gives "[redacted]"; only Reveal gives the text. The text
// is behind a pointer because fmt cannot call methods on unexported fields.
type Token struct{ text *string }

// Reveal returns the text. It is for the one line that tells the user how to connect.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Digest returns the SHA-256 of the text.
func (t Token) Digest() [32]byte { return sha256.Sum256([]byte(t.Reveal())) }

func (t Token) isZero() bool { return t.Reveal() == "" }

// String returns "[redacted]".
func (Token) String() string { return redacted }

// GoString returns "[redacted]".
func (Token) GoString() string { return redacted }

// MarshalText returns "[redacted]".
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]".
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// LoadToken reads the token in the existing directory dir, or makes one there and reports
// that it did. The file appears at once and whole, with mode 0600, and a loss of power does
// not take it away; of several processes that make one at the same time, one wins and all
// return its token. A file that others may read, a link, another user's file and one without
// a token are refused: such a token may be known to somebody, so it is not repaired but
// replaced by the user.
func LoadToken(dir string) (t Token, created bool, err error) {
	path := filepath.Join(dir, TokenFile)
	t, err = readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return t, false, err
	}
	err = createToken(dir, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Token{}, false, fmt.Errorf("make token: %w", err)
	}
	created = err == nil
	t, err = readToken(path)
	return t, created && err == nil, err
}

// createToken writes a token under another name and links it to path, which fails when
// there is one already; a rename would replace it.
func createToken(dir, path string) (err error) {
	f, err := os.CreateTemp(dir, TokenFile+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(newTokenText() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory durable. Tests look at what it is called for.
var syncDir = func(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func newTokenText() string {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
}

func readToken(path string) (Token, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return Token{}, err
	}
	if !before.Mode().IsRegular() {
		return Token{}, fmt.Errorf("%s: %w", path, ErrTokenFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return Token{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Token{}, err
	}
	if !os.SameFile(before, info) { // replaced between the look and the opening
		return Token{}, fmt.Errorf("%s: %w", path, ErrTokenFile)
	}
	if err := checkPrivate(path, info); err != nil {
		return Token{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return Token{}, err
	}
	text := string(bytes.TrimRight(data, "\r\n"))
	if !validToken(text) {
		return Token{}, fmt.Errorf("%s: %w", path, ErrTokenContent)
	}
	return Token{&text}, nil
}

func validToken(text string) bool {
	encoded, found := strings.CutPrefix(text, tokenPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	return found && err == nil && len(raw) == tokenBytes && base64.RawURLEncoding.EncodedLen(tokenBytes) == len(encoded)
}
