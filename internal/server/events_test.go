package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// reader is a program that follows a session with what its language has: HTTP and lines.
type reader struct {
	h    *home
	id   string // of the session
	last string // the last id
	said strings.Builder
	over bool
}

// read follows the events of one connection until it breaks, the run is over, or enough has been said.
func (r *reader) read(enough int) {
	r.h.t.Helper()
	token, err := os.ReadFile(filepath.Join(r.h.dir, "data", "token"))
	if err != nil {
		r.h.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.h.context(), http.MethodGet, r.h.url+"/v1/sessions/"+r.id+"/events", nil)
	if err != nil {
		r.h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Last-Event-ID", r.last)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.h.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		r.h.t.Fatalf("after %q: %s", r.last, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	id := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "data":
			r.take(value)
			if r.last = id; r.over || r.said.Len() >= enough {
				return
			}
		}
	}
}

func (r *reader) take(data string) {
	var frame struct {
		Events []struct {
			Delta    *struct{ Text string }
			RunEnded *struct{}
		}
		Reason string
	}
	if err := json.Unmarshal([]byte(data), &frame); err != nil {
		r.h.t.Fatalf("%v in %s", err, data)
	}
	if frame.Reason != "" && r.last != "" {
		r.h.t.Fatalf("after %s the state came instead of the events: %s", r.last, frame.Reason)
	}
	for _, e := range frame.Events {
		if e.Delta != nil {
			r.said.WriteString(e.Delta.Text)
		}
		r.over = r.over || e.RunEnded != nil
	}
}

// A program without a client reads every word once, over kills of the server.
func TestServerSentEventsOverKills(t *testing.T) {
	h := newHome(t, words)
	h.start()
	c := h.api()
	r := &reader{h: h, id: h.newSession(c)}
	r.read(0) // the state; its id is where the rest begins
	if r.last == "" {
		t.Fatal("no id")
	}
	h.promptAs(c, r.id, "", "words 200")
	for kill := 1; kill <= 3; kill++ {
		r.read(200 * kill)
		h.stop(syscall.SIGKILL)
		h.start()
	}
	for !r.over {
		r.read(1 << 20)
	}
	if want := strings.Repeat("word ", 200); r.said.String() != want {
		t.Errorf("read %d bytes, want %d: %q", r.said.Len(), len(want), r.said.String())
	}
}
