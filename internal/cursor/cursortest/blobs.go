package cursortest

import (
	"bytes"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// BlobFaults is what goes wrong with a client's blobs. The functions may be nil and are called from
// many goroutines.
type BlobFaults struct {
	// Latency delays the answer; each request waits by itself, so answers change places.
	Latency func(m *agentv1.KvServerMessage) time.Duration
	// Set fails the storing of a blob, Get its reading.
	Set, Get func(id cursorwire.BlobID) error
	// Missing makes a blob one that the client does not have.
	Missing func(id cursorwire.BlobID) bool
	// Silent leaves a request without an answer and without effect.
	Silent func(m *agentv1.KvServerMessage) bool
}

// Blobs is a client's store of blobs. The zero value is empty. It is safe for concurrent use.
type Blobs struct {
	faults BlobFaults
	mu     sync.Mutex
	data   map[string][]byte
}

// Get returns the blob with this id.
func (b *Blobs) Get(id []byte) (data []byte, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok = b.data[string(id)]
	return data, ok
}

// Put stores data under its id, and returns the id.
func (b *Blobs) Put(data []byte) cursorwire.BlobID {
	id := cursorwire.BlobIDOf(data)
	b.set(id.Bytes(), data)
	return id
}

// Len is the number of blobs.
func (b *Blobs) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.data)
}

// set does not look whether id fits data, as the SDK does not.
func (b *Blobs) set(id, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		b.data = map[string][]byte{}
	}
	b.data[string(id)] = bytes.Clone(data)
}

// answer carries out m (section 6.4).
func (b *Blobs) answer(m *agentv1.KvServerMessage) *agentv1.KvClientMessage {
	out := &agentv1.KvClientMessage{Id: m.GetId()}
	switch op := m.GetMessage().(type) {
	case *agentv1.KvServerMessage_SetBlobArgs:
		out.Message = &agentv1.KvClientMessage_SetBlobResult{SetBlobResult: b.answerSet(op.SetBlobArgs)}
	case *agentv1.KvServerMessage_GetBlobArgs:
		out.Message = &agentv1.KvClientMessage_GetBlobResult{GetBlobResult: b.answerGet(op.GetBlobArgs)}
	}
	return out
}

func (b *Blobs) answerSet(args *agentv1.SetBlobArgs) *agentv1.SetBlobResult {
	id, _ := cursorwire.ParseBlobID(args.GetBlobId())
	if b.faults.Set != nil {
		if err := b.faults.Set(id); err != nil {
			return &agentv1.SetBlobResult{Error: &agentv1.Error{Message: err.Error()}}
		}
	}
	b.set(args.GetBlobId(), args.GetBlobData())
	return new(agentv1.SetBlobResult)
}

// answerGet gives neither data nor an error for a blob that is not there.
func (b *Blobs) answerGet(args *agentv1.GetBlobArgs) *agentv1.GetBlobResult {
	id, _ := cursorwire.ParseBlobID(args.GetBlobId())
	if b.faults.Get != nil {
		if err := b.faults.Get(id); err != nil {
			return &agentv1.GetBlobResult{Error: &agentv1.Error{Message: err.Error()}}
		}
	}
	data, ok := b.Get(args.GetBlobId())
	if !ok || b.faults.Missing != nil && b.faults.Missing(id) {
		return new(agentv1.GetBlobResult)
	}
	if data == nil {
		data = []byte{}
	}
	return &agentv1.GetBlobResult{BlobData: data}
}
