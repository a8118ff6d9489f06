package cursor

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// FuzzAppend sends a body twice, before and after a run has begun. Whatever it is, it is answered by
// the time that a client waits, with what a client knows, and the next one is as well.
func FuzzAppend(f *testing.F) {
	for _, m := range []*agentv1.AgentClientMessage{runRequest("other"), execResult(1), beat(1), cancelAction()} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for _, seq := range []int64{0, 1, 2, -1, 1 << 62} {
			body, err := proto.Marshal(&aiserverv1.BidiAppendRequest{
				RequestId: &aiserverv1.BidiRequestId{RequestId: "id"}, AppendSeqno: seq, Data: hex.EncodeToString(data),
			})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body, "application/proto", "")
			f.Add(body[:len(body)-3], "application/proto", "gzip")
		}
	}
	f.Add([]byte(`{"data":"3a00","requestId":{"requestId":"id"},"appendSeqno":"3"}`), "application/json", "")
	f.Add([]byte(`{"data":"zz"}`), "application/json", "identity")
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding string) {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
				for r := range l.Received() {
					r.Done(nil)
				}
			}, MaxMessage: 64 << 10})
			defer h.Close()
			throw := func() {
				t.Helper()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cursorwire.PathBidiAppend, bytes.NewReader(body))
				r.Header.Set("Content-Type", contentType)
				r.Header.Set("Content-Encoding", encoding)
				w := httptest.NewRecorder()
				begun := time.Now()
				h.append(w, r)
				switch w.Code {
				case http.StatusOK, http.StatusUnsupportedMediaType:
				case http.StatusBadRequest, http.StatusTooManyRequests, http.StatusNotImplemented:
					if _, err := cursorwire.UnmarshalError(w.Body.Bytes()); err != nil {
						t.Error(err)
					}
				default:
					t.Errorf("status %d", w.Code)
				}
				if waited := time.Since(begun); waited > 31*time.Second {
					t.Errorf("waited %v", waited)
				}
			}
			throw()
			if status := post(t.Context(), h, "id", 0, runRequest("go")); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			throw()
			if status := post(t.Context(), h, "id", 1, beat(1)); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		})
	})
}
