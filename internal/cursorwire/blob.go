package cursorwire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// BlobID names a blob: the SHA-256 of its bytes (section 6.2).
type BlobID [sha256.Size]byte

// BlobIDOf returns the id of data. An empty blob has one too.
func BlobIDOf(data []byte) BlobID { return sha256.Sum256(data) }

// ParseBlobID reads an entry of a conversation's state (a turn, a step, a user message, a prompt
// message): 32 bytes are an id. Any other length is the content itself, as old clients write it, and
// ok is false.
func ParseBlobID(entry []byte) (id BlobID, ok bool) {
	if len(entry) != len(id) {
		return BlobID{}, false
	}
	return BlobID(entry), true
}

// Bytes returns the id as it stands in messages.
func (id BlobID) Bytes() []byte { return id[:] }

// String returns the id in lower-case hex.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// EncodeBlob returns m as a new blob. The same message gives the same bytes within one build of the
// program, but not for ever: what is referenced by its id has to be stored, never encoded again
// (section 6.1). A message decoded from a blob with fields in another order gives other bytes.
func EncodeBlob(m proto.Message) (BlobID, []byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return BlobID{}, nil, fmt.Errorf("encode blob: %w", err)
	}
	return BlobIDOf(data), data, nil
}
