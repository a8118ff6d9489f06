// Package blob stores bytes that are too large for an event, such as images, under the
// SHA-256 of their content. Events hold the hash only, so a blob must be durable before the
// event that names it is appended. A blob never changes, and storing the same bytes again takes
// no room.
//
//	DATA/blobs/ab/abcd…ef   one file per blob, in folders named after the first two digits
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// MaxSize is the largest blob in bytes.
const MaxSize = 32 << 20

var (
	// ErrNotFound says that there is no such blob. It is an fs.ErrNotExist.
	ErrNotFound = fmt.Errorf("no such blob: %w", fs.ErrNotExist)
	// ErrInvalidHash says that a name is not 64 lower-case hexadecimal digits.
	ErrInvalidHash = errors.New("not the hash of a blob")
	// ErrTooLarge says that the bytes are more than MaxSize.
	ErrTooLarge = fmt.Errorf("blob is larger than %d MiB", MaxSize>>20)
	// ErrCorrupt says that the stored bytes are not those that were put.
	ErrCorrupt = errors.New("blob is damaged")
	// ErrFull says that the disk has no room. Nothing was stored.
	ErrFull = errors.New("no space left for the blob")
)

// Store keeps blobs. Every method is safe for concurrent use.
type Store interface {
	// Put stores data and returns its hash once it would survive a loss of power. Errors:
	// ErrTooLarge, ErrFull.
	Put(ctx context.Context, data []byte) (hash string, err error)
	// Get returns the bytes of a hash, verified; they belong to the caller. Errors:
	// ErrInvalidHash, ErrNotFound, ErrCorrupt.
	Get(ctx context.Context, hash string) ([]byte, error)
}

// Hash returns the name of data in every Store.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ValidHash reports whether hash may name a blob: 64 lower-case hexadecimal digits.
func ValidHash(hash string) bool {
	if len(hash) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(hash) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func checkPut(ctx context.Context, data []byte) error {
	if len(data) > MaxSize {
		return ErrTooLarge
	}
	return ctx.Err()
}

func checkGet(ctx context.Context, hash string) error {
	if !ValidHash(hash) {
		return fmt.Errorf("%.80q: %w", hash, ErrInvalidHash)
	}
	return ctx.Err()
}
