package control_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// curl posts JSON as curl would and returns the status and the answer.
func curl(t *testing.T, r *controltest.Rig, method, body string) (int, map[string]any) {
	t.Helper()
	res := post(t, r, method, "application/json", strings.NewReader(body))
	defer func() { _ = res.Body.Close() }()
	answer := make(map[string]any)
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return res.StatusCode, answer
}

func post(t *testing.T, r *controltest.Rig, method, contentType string, body io.Reader) *http.Response {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Dial(ctx) }, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+control.Pattern+method, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestCurl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Thinks("hm", "Hello."))
		_, created := curl(t, r, "CreateSession", `{"cwd":"/","name":"demo"}`)
		id := created["session"].(map[string]any)["id"].(string)
		status, prompted := curl(t, r, "Prompt", `{"sessionId":"`+id+`","promptId":"p1","text":"Hi"}`)
		if status != http.StatusOK || prompted["run"] != 1.0 || prompted["itemId"] != "u1" {
			t.Errorf("Prompt: %d %v", status, prompted)
		}
		r.Idle(id)
		// The same id again is the same run.
		if _, again := curl(t, r, "Prompt", `{"sessionId":"`+id+`","promptId":"p1","text":"Hi"}`); again["run"] != 1.0 || again["itemId"] != "u1" {
			t.Errorf("repeated Prompt: %v", again)
		}
		_, got := curl(t, r, "GetSession", `{"sessionId":"`+id+`"}`)
		text, _ := json.Marshal(got)
		for _, want := range []string{`"Hello."`, `"hm"`, `"OUTCOME_COMPLETED"`, `"itemCount":2`, `"name":"demo"`, `"model":"test/family/model"`} {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("GetSession lacks %s:\n%s", want, text)
			}
		}
		if bytes.Contains(text, []byte(controltest.Signature)) {
			t.Error("GetSession gives away a reasoning signature")
		}
		if _, list := curl(t, r, "ListModels", `{}`); len(list["models"].([]any)) != 1 {
			t.Errorf("ListModels: %v", list)
		}
		if _, server := curl(t, r, "GetServer", `{}`); server["version"] != "test" || server["epoch"] != "1" || server["defaultModel"] != "test/family/model" {
			t.Errorf("GetServer: %v", server)
		}
		if _, blob := curl(t, r, "GetBlob", `{"blob":"`+controltest.Blob+`"}`); blob["data"] != base64.StdEncoding.EncodeToString([]byte("image")) {
			t.Errorf("GetBlob: %v", blob)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Hangs("x"))
		id := r.Create()
		r.Prompt(id, "go")
		for _, c := range []struct{ method, body, code, kind string }{
			{"GetSession", `{"sessionId":"nope"}`, "not_found", "not_found"},
			{"GetSession", `{"sessionId":"../x"}`, "not_found", "not_found"},
			{"GetSession", `{"sessionId":"` + id + `","pageSize":1001}`, "invalid_argument", "invalid"},
			{"GetSession", `{"sessionId":`, "invalid_argument", "invalid"},
			{"ListSessions", `{"pageToken":"x"}`, "invalid_argument", "invalid"},
			{"CreateSession", `{"model":"none"}`, "invalid_argument", "invalid"},
			{"CreateSession", `{"model":"no/such"}`, "invalid_argument", "invalid"},
			{"CreateSession", `{"cwd":"rel"}`, "invalid_argument", "invalid"},
			{"CreateSession", `{"parent":"a/b"}`, "invalid_argument", "invalid"},
			{"Prompt", `{"sessionId":"` + id + `","text":" "}`, "invalid_argument", "invalid"},
			{"Prompt", `{"sessionId":"` + id + `","text":"x"}`, "failed_precondition", "busy"},
			{"Prompt", `{"sessionId":"` + id + `","text":"` + strings.Repeat("x", 201<<10) + `"}`, "resource_exhausted", "too_large"},
			{"Prompt", `{"sessionId":"` + id + `","text":"` + strings.Repeat("x", 3<<20) + `"}`, "resource_exhausted", "too_large"},
			{"Steer", `{"sessionId":"` + id + `"}`, "invalid_argument", "invalid"},
			{"SetModel", `{"sessionId":"` + id + `","model":"test/family/model"}`, "failed_precondition", "busy"},
			{"SetThinking", `{"sessionId":"` + id + `","thinking":"high"}`, "failed_precondition", "busy"},
			{"GetBlob", `{"blob":"../../etc/passwd"}`, "invalid_argument", "invalid"},
			{"GetBlob", `{"blob":"` + strings.Repeat("b", 64) + `"}`, "not_found", "not_found"},
		} {
			_, answer := curl(t, r, c.method, c.body)
			details, _ := json.Marshal(answer["details"])
			if answer["code"] != c.code || !bytes.Contains(details, []byte(`"kind":"`+c.kind+`"`)) {
				t.Errorf("%s %.60s: %v", c.method, c.body, answer)
			}
		}
	})
}

func TestPanicEndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, func(o *control.Options) { o.Models = nil })
		status, answer := curl(t, r, "ListModels", `{}`)
		if status != http.StatusInternalServerError || answer["message"] != "internal error" {
			t.Errorf("got %d %v", status, answer)
		}
		if status, _ := curl(t, r, "GetServer", `{}`); status != http.StatusOK {
			t.Errorf("the next call: %d", status)
		}
	})
}

// A watch in JSON is a sequence of frames of one flag byte, four bytes of length, and JSON.
func TestWatchJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		body := `{"sessionId":"` + id + `"}`
		request := append([]byte{0, 0, 0, 0, byte(len(body))}, body...)
		res := post(t, r, "Watch", "application/connect+json", bytes.NewReader(request))
		defer func() { _ = res.Body.Close() }()
		head := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, head); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(res.Body, frame); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(frame, []byte(`"reset":`)) || !bytes.Contains(frame, []byte(`"RESET_REASON_START"`)) {
			t.Errorf("first frame: %s", frame)
		}
	})
}
