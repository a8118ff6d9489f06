package cursortest

import (
	"errors"
	"testing"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func (x *exchange) getBlob(id []byte) {
	x.n++
	x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_KvServerMessage{KvServerMessage: &agentv1.KvServerMessage{
		Id: x.n, Message: &agentv1.KvServerMessage_GetBlobArgs{GetBlobArgs: &agentv1.GetBlobArgs{BlobId: id}},
	}}})
}

func TestBlobFaults(t *testing.T) {
	var known, missing, failing, silent, empty cursorwire.BlobID
	s := newStub(t, false, within(func(x *exchange) {
		x.getBlob(silent.Bytes())
		x.getBlob(known.Bytes())
		if r := x.receive().GetKvClientMessage(); r.GetId() != 2 || string(r.GetGetBlobResult().GetBlobData()) != "known" {
			t.Errorf("a known blob: %v", r)
		}
		x.getBlob(missing.Bytes())
		if r := x.receive().GetKvClientMessage().GetGetBlobResult(); r == nil || r.BlobData != nil || r.GetError() != nil {
			t.Errorf("a missing blob: %v", r)
		}
		x.getBlob(empty.Bytes())
		if r := x.receive().GetKvClientMessage().GetGetBlobResult(); r.GetBlobData() == nil {
			t.Errorf("an empty blob: %v", r)
		}
		x.getBlob(failing.Bytes())
		if r := x.receive().GetKvClientMessage().GetGetBlobResult(); r.GetError().GetMessage() != "disk" {
			t.Errorf("a blob that cannot be read: %v", r)
		}
		x.setBlob(failing.Bytes(), []byte("failing"))
		if r := x.receive().GetKvClientMessage().GetSetBlobResult(); r.GetError().GetMessage() != "disk" {
			t.Errorf("a blob that cannot be stored: %v", r)
		}
	}))
	disk := func(id cursorwire.BlobID) error {
		if id == failing {
			return errors.New("disk")
		}
		return nil
	}
	c := s.client(func(o *Options) {
		o.Blobs = BlobFaults{
			Set: disk, Get: disk,
			Missing: func(id cursorwire.BlobID) bool { return id == missing },
			Silent: func(m *agentv1.KvServerMessage) bool {
				return string(m.GetGetBlobArgs().GetBlobId()) == string(silent.Bytes())
			},
		}
	})
	known, missing, empty = c.Blobs().Put([]byte("known")), c.Blobs().Put([]byte("missing")), c.Blobs().Put(nil)
	failing, silent = cursorwire.BlobIDOf([]byte("failing")), cursorwire.BlobIDOf([]byte("silent"))
	mustRun(t, c, "hi")
	if _, ok := c.Blobs().Get(failing.Bytes()); ok {
		t.Error("a blob was stored whose storing failed")
	}
}
