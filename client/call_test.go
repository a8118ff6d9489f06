package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func TestSettingsAndSteers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		r := controltest.Start(t, nil, controltest.Hangs("x"))
		id := r.Create()
		for _, err := range []error{
			r.Client.Rename(ctx, id, "nest"), r.Client.SetThinking(ctx, id, "high"), r.Client.SetModel(ctx, id, "test/family/model"),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		r.Prompt(id, "go")
		for range 2 {
			if s, err := r.Client.Steer(ctx, id, "s1", "left"); err != nil || s.ItemId != "u2" || s.Run != 1 {
				t.Errorf("steer: %v, %v", s, err)
			}
		}
		res, err := r.Client.Session(ctx, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s := res.Session; s.Name != "nest" || s.Thinking != "high" || len(s.Queue) != 1 || s.Run.GetId() != 1 {
			t.Errorf("session: %v", s)
		}
		a, err := r.Client.Abort(ctx, id)
		if err != nil || a.Run != 1 || len(a.Dropped) != 1 || a.Dropped[0].GetUser().GetBlocks()[0].GetText().GetText() != "left" {
			t.Errorf("abort: %v, %v", a, err)
		}
		if v := r.Idle(id); v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_ABORTED || len(v.Session.Queue) != 0 {
			t.Errorf("after the abort: %v", v.Session)
		}
		if _, err := r.Client.Abort(ctx, id); client.KindOf(err) != client.Busy {
			t.Errorf("abort of an idle session: %v", err)
		}
	})
}

func TestListsArePaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		var want []string
		for i := range 250 {
			want = append(want, r.Create())
			if i%3 == 0 { // some are of the same moment
				time.Sleep(time.Second) // simulated
			}
		}
		var got []string
		for s, err := range r.Client.Sessions(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.Id)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		for i := range 60 {
			r.Prompt(id, fmt.Sprint("prompt ", i))
			r.Idle(id)
		}
		head, items, err := r.Client.Transcript(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if head.ItemCount != 120 || len(items) != 120 || items[118].GetUser().Blocks[0].GetText().Text != "prompt 59" {
			t.Errorf("%d items of %d", len(items), head.ItemCount)
		}
		if diff := cmp.Diff(r.Idle(id).Items, items[20:], protocmp.Transform()); diff != "" {
			t.Errorf("a watch brings other items (-watch +pages):\n%s", diff)
		}
	})
}

// A prompt whose answer is lost is asked again and starts one run.
func TestPromptSurvivesLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		tries := 0
		c := lossy(t, r, func() bool { tries++; return tries <= 3 })
		p, err := c.Prompt(t.Context(), id, "", "go")
		if err != nil || p.Run != 1 {
			t.Fatalf("got %v, %v", p, err)
		}
		if tries < 3 {
			t.Errorf("only %d tries", tries)
		}
		if v := r.Idle(id); len(v.Items) != 2 {
			t.Errorf("%d items, want one run with 2", len(v.Items))
		}
	})
}

// lossy returns a client whose connections break when the answer should come, while lose
// says so.
func lossy(t *testing.T, r *controltest.Rig, lose func() bool) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Address: "http://localhost", Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := r.Dial(ctx)
		if err == nil && lose() {
			return deaf{conn}, nil
		}
		return conn, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// deaf is a connection that loses everything it should bring.
type deaf struct{ net.Conn }

func (d deaf) Read(p []byte) (int, error) {
	if _, err := d.Conn.Read(p); err != nil {
		return 0, err
	}
	_ = d.Close()
	return 0, errors.New("connection reset")
}

func TestPromptGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		c := r.NewClient(client.Options{RetryFor: time.Minute})
		id := r.Create()
		r.Down()
		began := time.Now()
		_, err := c.Prompt(t.Context(), id, "", "go")
		if took := time.Since(began); client.KindOf(err) != client.Unreachable || took > time.Minute || took < 50*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Prompt(ctx, id, "", "go"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestFromDataDir(t *testing.T) {
	dir := t.TempDir()
	if _, err := client.FromDataDir(dir); client.KindOf(err) != client.Unreachable {
		t.Errorf("without a server: %v", err)
	}
	socket := filepath.Join(dir, "x.http")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization") + " " + r.URL.Path
		http.Error(w, "no", http.StatusUnauthorized)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	write(t, filepath.Join(dir, client.EndpointFile), "unix:"+socket+"\n")
	write(t, filepath.Join(dir, client.TokenFile), "secret\n")
	c, err := client.FromDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Server(t.Context()); client.KindOf(err) != client.Unauthenticated {
		t.Errorf("got %v, want unauthenticated", err)
	}
	if h := <-got; h != "Bearer secret /roost.v1.SessionService/GetServer" {
		t.Errorf("the request had %q", h)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "localhost:1", "unix:", "ftp://x", "http://", "http://user:pw@host"} {
		if _, err := client.New(client.Options{Address: address}); client.KindOf(err) != client.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Something else than roost behind the address gives an error that says so.
func TestForeignServer(t *testing.T) {
	for status, want := range map[int]client.Kind{
		http.StatusNotFound: client.NotFound, http.StatusForbidden: client.Forbidden,
		http.StatusServiceUnavailable: client.Unreachable, http.StatusOK: client.Unreachable,
		http.StatusFound: client.Unreachable,
	} {
		c := foreign(t, status)
		if _, err := c.Server(t.Context()); client.KindOf(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("status %d: %s %v", status, client.KindOf(err), err)
		}
	}
}

func foreign(t *testing.T, status int) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html>hello</html>"))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c, err := client.New(client.Options{Address: "http://" + listener.Addr().String(), Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
