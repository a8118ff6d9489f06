package pi

import (
	"context"
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/piwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var server = &piwire.ServerSnapshot{ServerID: "s"}

func session(revision int64, attached bool, items ...piwire.Item) *piwire.SessionSnapshot {
	return &piwire.SessionSnapshot{
		ID: "s1", Cwd: "/", Phase: piwire.PhaseIdle, Model: piwire.ModelRef{Provider: "p", ID: "m"},
		ThinkingLevel: piwire.ThinkingOff, Attached: attached, Locked: true, Revision: revision, Transcript: items,
	}
}

// serve answers a client's hello, and each request of it with the next messages.
func serve(t *testing.T, nc net.Conn, answers ...[]piwire.ServerMessage) {
	t.Helper()
	write := func(messages ...piwire.ServerMessage) {
		for _, m := range messages {
			b, err := piwire.AppendServerFrame(nil, m, piwire.MaxFrame)
			if err != nil {
				t.Error(err)
			}
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}
	messages := piwire.NewClientReader(nc, piwire.MaxFrame)
	if _, err := messages.Read(); err != nil {
		return
	}
	write(&piwire.ServerHello{ConnectionID: "c", Snapshot: server})
	for _, a := range answers {
		if _, err := messages.Read(); err != nil {
			return
		}
		write(a...)
	}
	_, _ = messages.Read() // until the client goes
}

func connect(t *testing.T, answers ...[]piwire.ServerMessage) *Client {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(t, b, answers...)
		_ = b.Close()
	}()
	c, err := New(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return c
}

func TestViolationsEndTheConnection(t *testing.T) {
	list := &piwire.Response{ID: "1", Result: &piwire.ListResult{}}
	for name, answer := range map[string][]piwire.ServerMessage{
		"unknown id":      {&piwire.Response{ID: "7", Result: &piwire.ListResult{}}},
		"second answer":   {list, list},
		"another command": {&piwire.Response{ID: "1", Result: &piwire.DetachResult{SessionID: "s"}}},
		"second hello":    {&piwire.ServerHello{ConnectionID: "c", Snapshot: server}},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, answer)
			_, err := c.Do(t.Context(), &piwire.List{})
			<-c.Done()
			if !errors.Is(c.Err(), ErrViolation) || (err != nil && !errors.Is(err, ErrViolation)) {
				t.Errorf("got %v, then %v", err, c.Err())
			}
		})
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	busy := piwire.ProtocolError{Code: piwire.CodeBusy, Message: "no"}
	c := connect(t, []piwire.ServerMessage{&piwire.Response{ID: "1", Error: &busy}}, []piwire.ServerMessage{&piwire.HelloError{Error: busy}})
	for n := range 2 {
		_, err := c.Do(t.Context(), &piwire.List{})
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != piwire.CodeBusy {
			t.Errorf("request %d: %v", n, err)
		}
	}
	<-c.Done()
}

// A request that is given up is answered later without harm.
func TestRequestIsGivenUp(t *testing.T) {
	c := connect(t, nil, []piwire.ServerMessage{
		&piwire.Response{ID: "1", Result: &piwire.ListResult{}}, &piwire.Response{ID: "2", Result: &piwire.ListResult{}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, &piwire.List{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Do(t.Context(), &piwire.List{}); err != nil {
		t.Error(err)
	}
}

func TestViewsFollowAttachments(t *testing.T) {
	attached := &piwire.Response{ID: "1", Result: &piwire.SessionResult{Command: piwire.CommandAttach, Session: session(3, true)}}
	c := connect(t,
		[]piwire.ServerMessage{attached},
		[]piwire.ServerMessage{&piwire.SessionRemovedEvent{SessionID: "s1"}, &piwire.Response{ID: "2", Result: &piwire.ListResult{}}},
	)
	if s, err := c.Session(t.Context(), &piwire.Attach{SessionID: "s1"}); err != nil || s.Revision != 3 {
		t.Fatalf("%v, %v", s, err)
	}
	if err := c.Until(t.Context(), "s1", func(v *View) bool { return v.Snapshot.Revision == 3 }); err != nil {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), &piwire.List{}); err != nil {
		t.Error(err)
	}
	c.With("s1", func(v *View) {
		if v != nil {
			t.Error("the view outlives its session")
		}
	})
}

// The published client's reducer, its oddities included (SPEC 7.2).
func TestView(t *testing.T) {
	item := func(blocks ...piwire.Block) *piwire.AssistantItem {
		return &piwire.AssistantItem{ID: "a", Content: blocks, Status: piwire.AssistantStreaming}
	}
	delta := func(index int64, kind piwire.DeltaKind, text string) piwire.Progress {
		return &piwire.AssistantDelta{MessageID: "a", ContentIndex: index, Kind: kind, Delta: text}
	}
	var v View
	v.SetSnapshot(session(5, true, item(&piwire.Text{Text: "x"}, &piwire.ToolCall{ToolCallID: "c", ToolName: "n", Input: piwire.TextValue(`{"a"`)})))
	v.SetSnapshot(session(4, true)) // lower: ignored
	v.Apply(delta(0, piwire.DeltaText, "y"))
	v.Apply(delta(0, piwire.DeltaThinking, "no"))
	v.Apply(delta(7, piwire.DeltaText, "no"))
	v.Apply(&piwire.AssistantDelta{MessageID: "b", Kind: piwire.DeltaText, Delta: "no"})
	v.Apply(delta(1, piwire.DeltaToolCall, `:1`))
	shown := v.Transcript()[0].(*piwire.AssistantItem).Content
	if text := shown[0].(*piwire.Text).Text; text != "xy" {
		t.Errorf("text %q", text)
	}
	if text, _ := shown[1].(*piwire.ToolCall).Input.Text(); text != `{"a":1` {
		t.Errorf("half the input is %q", text)
	}
	v.Apply(&piwire.ItemUpdated{Item: item(&piwire.Text{}, &piwire.ToolCall{ToolCallID: "c", ToolName: "n", Input: piwire.Null()})})
	v.Apply(delta(1, piwire.DeltaToolCall, `}`)) // goes on where it was
	if got := v.Transcript()[0].(*piwire.AssistantItem).Content[1].(*piwire.ToolCall).Input.String(); got != `{"a":1}` {
		t.Errorf("input %s", got)
	}
	equal := session(5, true)
	equal.QueuedSteer = []piwire.Item{&piwire.UserItem{ID: "u"}, &piwire.UserItem{ID: "u"}}
	v.SetSnapshot(equal) // equal: replaces, and forgets progress
	if got := v.Transcript(); len(got) != 1 || ItemID(got[0]) != "u" {
		t.Errorf("got %v", got)
	}
}
