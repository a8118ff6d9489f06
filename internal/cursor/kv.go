package cursor

import (
	"time"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Times of the client's blob store (section 6.4).
const (
	getTimeout = 10 * time.Second
	setTimeout = 5 * time.Second
)

// kv is the client's store of blobs as its driver uses it: many requests in flight, answers in any
// order (sections 3.5 and 6.4). It belongs to the driver's goroutine.
type kv struct {
	send    func(*agentv1.AgentServerMessage)
	next    uint32
	pending map[uint32]*kvRequest
	known   map[cursorwire.BlobID][]byte // what the client sent along, and what it has answered
	missing map[cursorwire.BlobID]bool   // the client does not have it
	has     map[cursorwire.BlobID]bool   // the client is sure to have it
}

type kvRequest struct {
	id  cursorwire.BlobID
	set bool
	due time.Time
}

func newKV(send func(*agentv1.AgentServerMessage)) kv {
	return kv{
		send: send, pending: make(map[uint32]*kvRequest), known: make(map[cursorwire.BlobID][]byte),
		missing: make(map[cursorwire.BlobID]bool), has: make(map[cursorwire.BlobID]bool),
	}
}

// have returns a blob, or nil and true when the client does not have it.
func (k *kv) have(id cursorwire.BlobID) ([]byte, bool) {
	if data, ok := k.known[id]; ok {
		return data, true
	}
	return nil, k.missing[id]
}

// get asks for a blob unless its fate is known or it has been asked for.
func (k *kv) get(id cursorwire.BlobID) {
	if _, ok := k.have(id); ok || k.inFlight(id, false) {
		return
	}
	k.request(id, false, &agentv1.KvServerMessage{
		Message: &agentv1.KvServerMessage_GetBlobArgs{GetBlobArgs: &agentv1.GetBlobArgs{BlobId: id.Bytes()}},
	})
}

// set has the client keep a blob unless it is sure to have it or is being told.
func (k *kv) set(id cursorwire.BlobID, data []byte) {
	if k.has[id] || k.inFlight(id, true) {
		return
	}
	k.request(id, true, &agentv1.KvServerMessage{
		Message: &agentv1.KvServerMessage_SetBlobArgs{SetBlobArgs: &agentv1.SetBlobArgs{BlobId: id.Bytes(), BlobData: data}},
	})
}

func (k *kv) request(id cursorwire.BlobID, set bool, m *agentv1.KvServerMessage) {
	k.next++
	m.Id = k.next
	timeout := getTimeout
	if set {
		timeout = setTimeout
	}
	k.pending[m.Id] = &kvRequest{id: id, set: set, due: time.Now().Add(timeout)}
	k.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_KvServerMessage{KvServerMessage: m}})
}

func (k *kv) inFlight(id cursorwire.BlobID, set bool) bool {
	for _, r := range k.pending {
		if r.id == id && r.set == set {
			return true
		}
	}
	return false
}

// answer takes an answer of the client. A blob that is not what its id says is as good as missing.
func (k *kv) answer(m *agentv1.KvClientMessage) {
	r := k.pending[m.GetId()]
	if r == nil {
		return
	}
	delete(k.pending, m.GetId())
	switch {
	case r.set:
		k.has[r.id] = m.GetSetBlobResult() != nil && m.GetSetBlobResult().GetError() == nil
	case m.GetGetBlobResult().GetBlobData() != nil && cursorwire.BlobIDOf(m.GetGetBlobResult().GetBlobData()) == r.id:
		k.known[r.id], k.has[r.id] = m.GetGetBlobResult().GetBlobData(), true
	default:
		k.missing[r.id] = true
	}
}

// expire gives up the requests that were not answered in time.
func (k *kv) expire(now time.Time) {
	for id, r := range k.pending {
		if now.Before(r.due) {
			continue
		}
		delete(k.pending, id)
		if !r.set {
			k.missing[r.id] = true
		}
	}
}

// deadline returns when expire has something to do, or the zero time.
func (k *kv) deadline() time.Time {
	var at time.Time
	for _, r := range k.pending {
		if at.IsZero() || r.due.Before(at) {
			at = r.due
		}
	}
	return at
}

// knows reports whether the fate of all the blobs is known.
func (k *kv) knows(ids []cursorwire.BlobID) bool {
	for _, id := range ids {
		if _, ok := k.have(id); !ok {
			return false
		}
	}
	return true
}

// imply notes that a client which has a turn has all that the turn refers to. The blobs of a turn
// come before its own.
func (k *kv) imply(c *cursorview.Checkpoint) {
	turns := make(map[string]bool, len(c.State.Turns))
	for _, t := range c.State.Turns {
		turns[string(t)] = true
	}
	first := 0
	for i, b := range c.Blobs {
		if !turns[string(b.ID.Bytes())] {
			continue
		}
		if k.has[b.ID] {
			for _, child := range c.Blobs[first:i] {
				k.has[child.ID] = true
			}
		}
		first = i + 1
	}
}
