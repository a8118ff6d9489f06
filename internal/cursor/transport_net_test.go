package cursor

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// listener is a hub behind a real server, and one client of either version of HTTP.
type listener struct {
	t      testing.TB
	url    string
	client *http.Client
	stop   context.CancelFunc // ends the contexts of requests, as a server that closes does
}

func listen(t testing.TB, h *hub, version int) *listener {
	t.Helper()
	mux := http.NewServeMux()
	h.register(mux)
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	ctx, stop := context.WithCancel(context.Background())
	srv.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	srv.Start()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetUnencryptedHTTP2(version == 2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(func() {
		stop()
		h.Close()
		transport.CloseIdleConnections()
		srv.Close()
	})
	return &listener{t: t, url: srv.URL, client: &http.Client{Transport: transport}, stop: stop}
}

// reply is what a server answers. Its body is closed when the test ends.
type reply struct {
	status int
	header http.Header
	body   io.ReadCloser
}

func (l *listener) post(ctx context.Context, path, contentType string, head map[string]string, body io.Reader) reply {
	l.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, body)
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for k, v := range head {
		r.Header.Set(k, v)
	}
	resp, err := l.client.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = resp.Body.Close() })
	return reply{resp.StatusCode, resp.Header, resp.Body}
}

// sse opens a RunSSE.
func (l *listener) sse(ctx context.Context, id string) reply {
	l.t.Helper()
	return l.post(ctx, cursorwire.PathRunSSE, "application/connect+proto", nil, bytes.NewReader(enveloped(l.t, &agentv1.BidiRequestId{RequestId: id})))
}

// begin sends a run_request.
func (l *listener) begin(ctx context.Context, id string) {
	l.t.Helper()
	resp := l.post(ctx, cursorwire.PathBidiAppend, "application/json", nil, bytes.NewReader(appendJSON(l.t, id, 0, runRequest("go"))))
	if resp.status != http.StatusOK {
		l.t.Fatal(resp.status)
	}
}

func enveloped(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := cursorwire.AppendMessage(nil, cursorwire.Proto, m, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func inGzip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// texts returns what a stream says to its end.
func texts(t *testing.T, body io.Reader) (text string, end *cursorwire.Error, ended bool) {
	t.Helper()
	messages, end, ended := envelopes(t, body)
	for _, data := range messages {
		text += decodeText(t, cursorwire.PathRunSSE, cursorwire.Proto, data)
	}
	return text, end, ended
}

// appendJSON is an append as someone writes it by hand.
func appendJSON(t testing.TB, id string, seq int64, m *agentv1.AgentClientMessage) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"data":%q,"requestId":{"requestId":%q},"appendSeqno":"%d"}`, hex.EncodeToString(data), id, seq)
}

// Appends are read and answered in their codec; what is none is told so (section 1.5).
func TestAppendOverHTTP(t *testing.T) {
	for _, version := range []int{1, 2} {
		l := listen(t, newHub(hubOptions{Drive: echo, MaxMessage: 1000}), version)
		run := appendJSON(t, "id", 0, runRequest("go"))
		long := appendJSON(t, "id", 1, runRequest(strings.Repeat("x", 1001)))
		for name, c := range map[string]struct {
			contentType, encoding string
			body                  []byte
			status                int
			code                  cursorwire.Code
		}{
			"a run":             {"application/json; charset=utf-8", "", run, 200, ""},
			"the same in gzip":  {"application/json", "gzip", inGzip(t, run), 200, ""},
			"no gzip":           {"application/json", "gzip", run, 400, cursorwire.InvalidArgument},
			"another encoding":  {"application/json", "br", run, 501, cursorwire.Unimplemented},
			"no JSON":           {"application/json", "", []byte("{"), 400, cursorwire.InvalidArgument},
			"no protobuf":       {"application/proto", "", []byte("\xff"), 400, cursorwire.InvalidArgument},
			"nothing":           {"application/proto", "", nil, 400, cursorwire.InvalidArgument},
			"too long":          {"application/json", "", long, 429, cursorwire.ResourceExhausted},
			"a form":            {"application/x-www-form-urlencoded", "", run, 415, ""},
			"a stream":          {"application/connect+proto", "", run, 415, ""},
			"no message in hex": {"application/json", "", []byte(`{"data":"ffff","requestId":{"requestId":"id"}}`), 400, cursorwire.InvalidArgument},
		} {
			resp := l.post(t.Context(), cursorwire.PathBidiAppend, c.contentType, map[string]string{"Content-Encoding": c.encoding}, bytes.NewReader(c.body))
			body, err := io.ReadAll(resp.body)
			if err != nil || resp.status != c.status {
				t.Errorf("%s: status %d, %q, %v", name, resp.status, body, err)
			}
			if c.status == 200 && (string(body) != "{}" || resp.header.Get("Content-Type") != "application/json") {
				t.Errorf("%s: %q", name, body)
			}
			if c.code != "" {
				if e, bad := cursorwire.UnmarshalError(body); bad != nil || e.Code != c.code {
					t.Errorf("%s: %v, %v", name, e, bad)
				}
			}
		}
	}
}

// Nothing but POST is answered.
func TestMethods(t *testing.T) {
	l := listen(t, newHub(hubOptions{Drive: echo}), 1)
	for _, path := range []string{cursorwire.PathBidiAppend, cursorwire.PathRunSSE, cursorwire.PathRun, cursorwire.PathRunPoll} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: status %d, allowed %q", path, resp.StatusCode, resp.Header.Get("Allow"))
		}
		if resp := l.post(t.Context(), path, "text/plain", nil, http.NoBody); resp.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: status %d", path, resp.status)
		}
	}
}

// A request that names no stream is told so, in the stream.
func TestStreamWithoutAnID(t *testing.T) {
	l := listen(t, newHub(hubOptions{Drive: echo}), 1)
	for name, c := range map[string]struct {
		body []byte
		code cursorwire.Code
	}{
		"nothing":     {nil, cursorwire.InvalidArgument},
		"cut":         {[]byte("\x00\x00\x00\x00\x09\x0a"), cursorwire.InvalidArgument},
		"empty":       {enveloped(t, &agentv1.BidiRequestId{RequestId: "  "}), cursorwire.InvalidArgument},
		"too long":    {[]byte("\x00\x7f\x00\x00\x00"), cursorwire.ResourceExhausted},
		"no protobuf": {[]byte("\x00\x00\x00\x00\x01\xff"), cursorwire.InvalidArgument},
	} {
		for _, path := range []string{cursorwire.PathRunSSE, cursorwire.PathRunPoll} {
			resp := l.post(t.Context(), path, "application/connect+proto", nil, bytes.NewReader(c.body))
			if _, end, ended := texts(t, resp.body); !ended || end == nil || end.Code != c.code {
				t.Errorf("%s: ended %v with %v", name, ended, end)
			}
		}
	}
}

// A reply leaves at once, in either version of HTTP, and a client that leaves is noticed.
func TestStreamOverHTTP(t *testing.T) {
	for _, version := range []int{1, 2} {
		links := make(chan link, 1)
		l := listen(t, newHub(hubOptions{Drive: held(links)}), version)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		resp := l.sse(ctx, "id")
		l.begin(t.Context(), "id")
		run := <-links
		reader := cursorwire.NewEnvelopeReader(resp.body, "", 1<<20)
		for _, text := range []string{"a", "b"} {
			run.Send(textMessage(text), 0)
			if e, err := reader.Next(); err != nil || decodeText(t, cursorwire.PathRunSSE, cursorwire.Proto, e.Data) != text {
				t.Fatalf("%q, %v", e.Data, err)
			}
		}
		leave()
		<-run.Gone()
	}
}

// A server that closes ends the contexts of its requests first. Its streams have an end all the same,
// which has their clients try again.
func TestEndWhenTheServerCloses(t *testing.T) {
	for _, version := range []int{1, 2} {
		links := make(chan link, 1)
		l := listen(t, newHub(hubOptions{Drive: held(links)}), version)
		responses := []reply{l.sse(t.Context(), "id"), l.sse(t.Context(), "no run")}
		l.begin(t.Context(), "id")
		<-(<-links).Connected()
		l.stop()
		for i, resp := range responses {
			if _, end, ended := texts(t, resp.body); !ended || end == nil || end.Code != cursorwire.Unavailable {
				t.Errorf("HTTP/%d, %d: ended %v with %v", version, i, ended, end)
			}
		}
	}
}

// Over HTTP/2 both halves are one request; the end of the client's half is no more than that.
func TestRun(t *testing.T) {
	for _, requestID := range []string{"mine", ""} {
		links, half := make(chan link, 1), make(chan struct{})
		l := listen(t, newHub(hubOptions{Drive: func(_ context.Context, l link) {
			links <- l
			for r := range l.Received() {
				r.Done(nil)
				l.Send(textMessage(fmt.Sprint(r.Seq)), uint64(r.Seq+1))
			}
			close(half)
			l.Send(textMessage("more"), 9)
			l.End(nil)
		}}), 2)
		body, client := io.Pipe()
		head := map[string]string{"X-Request-Id": requestID, "X-Cursor-Client-Type": "cli"}
		resp := l.post(t.Context(), cursorwire.PathRun, "application/connect+proto", head, body)
		reader := cursorwire.NewEnvelopeReader(resp.body, "", 1<<20)
		for seq, m := range []*agentv1.AgentClientMessage{beat(1), runRequest("go"), execResult(1), cancelAction()} {
			if _, err := client.Write(enveloped(t, m)); err != nil {
				t.Fatal(err)
			}
			if seq == 0 {
				continue // there is no run yet
			}
			if e, err := reader.Next(); err != nil || decodeText(t, cursorwire.PathRun, cursorwire.Proto, e.Data) != fmt.Sprint(seq) {
				t.Fatalf("seq %d: %q, %v", seq, e.Data, err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		<-half
		if text, end, ended := texts(t, resp.body); text != "more" || end != nil || !ended {
			t.Errorf("%q, ended %v with %v", text, ended, end)
		}
		run := <-links
		if id := run.RequestID(); id == "" || requestID != "" && id != requestID || run.Headers().ClientType != "cli" || !isClosed(run.Connected()) {
			t.Errorf("id %q, headers %+v", id, run.Headers())
		}
		<-run.Gone()
	}
}

// What is no run ends with an error that says so.
func TestRunThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		body    []byte
		open    bool // the client's half stays so
		code    cursorwire.Code
	}{
		"HTTP/1.1":       {1, enveloped(t, runRequest("go")), false, cursorwire.Unimplemented},
		"nothing":        {2, nil, false, cursorwire.InvalidArgument},
		"no run":         {2, enveloped(t, beat(1)), false, cursorwire.InvalidArgument},
		"garbage":        {2, []byte("\x00\x00\x00\x00\x01\xff"), true, cursorwire.InvalidArgument},
		"cut":            {2, []byte("\x00\x00\x00\x00\x09\xff"), false, cursorwire.InvalidArgument},
		"silence":        {2, nil, true, cursorwire.Unavailable},
		"too long":       {2, []byte("\x00\x7f\x00\x00\x00"), true, cursorwire.ResourceExhausted},
		"garbage, later": {2, append(enveloped(t, runRequest("go")), "\x00\x00\x00\x00\x01\xff"...), true, cursorwire.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			links := make(chan link, 1)
			h := newHub(hubOptions{Drive: held(links), Placeholder: 200 * time.Millisecond, MaxMessage: 1 << 20})
			l := listen(t, h, c.version)
			body, client := io.Pipe()
			defer client.Close()
			go func() {
				if _, err := client.Write(c.body); err == nil && !c.open {
					_ = client.Close()
				}
			}()
			resp := l.post(t.Context(), cursorwire.PathRun, "application/connect+proto", nil, body)
			if _, end, ended := texts(t, resp.body); !ended || end == nil || end.Code != c.code {
				t.Errorf("ended %v with %v", ended, end)
			}
			h.Close()
			if left := holds(h); left != (holding{}) {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

// The reset of a stream is its client's departure.
func TestRunReset(t *testing.T) {
	links := make(chan link, 1)
	l := listen(t, newHub(hubOptions{Drive: held(links)}), 2)
	body, client := io.Pipe()
	defer client.Close()
	go func() { _, _ = client.Write(enveloped(t, runRequest("go"))) }()
	resp := l.post(t.Context(), cursorwire.PathRun, "application/connect+proto", nil, body)
	run := <-links
	if err := resp.body.Close(); err != nil {
		t.Error(err)
	}
	<-run.Gone()
}
