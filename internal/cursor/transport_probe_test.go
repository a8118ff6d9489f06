package cursor

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"bytes"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
			r := <-l.Received()
			r.Done(nil)
			l.End(nil)
		}})
		defer h.Close()
		post := func(seq int64, m *agentv1.AgentClientMessage) int {
			data, _ := proto.Marshal(m)
			body, _ := proto.Marshal(&aiserverv1.BidiAppendRequest{Data: hex.EncodeToString(data), RequestId: &aiserverv1.BidiRequestId{RequestId: "a"}, AppendSeqno: seq})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cursorwire.PathBidiAppend, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/proto")
			w := httptest.NewRecorder()
			h.append(w, r)
			return w.Code
		}
		t.Log(post(0, &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: &agentv1.AgentRunRequest{}}}))
		synctest.Wait()
		t.Log(post(1, &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{ClientHeartbeat: &agentv1.ClientHeartbeat{}}}))
	})
}
