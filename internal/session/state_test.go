package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
)

// show prints all that a reader of a state can see.
func show(s *session.State) string {
	b, err := json.Marshal(struct {
		Head  session.Head
		Items []session.Item
		Queue []*session.User
		Phase session.Phase
	}{s.Head, s.Transcript(), append([]*session.User{}, s.Queue...), s.Phase()})
	return fmt.Sprint(string(b), err)
}

// What was cloned never changes again, and can be folded further on its own.
func TestCloneIsASnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		s := &session.State{}
		var clones []*session.State
		var shown []string
		for _, r := range records {
			s.Apply(r)
			clones = append(clones, s.Clone())
			shown = append(shown, show(s))
		}
		for i, c := range clones {
			if got := show(c); got != shown[i] {
				t.Fatalf("the clone after event %d became\n%s\nit was\n%s", i+1, got, shown[i])
			}
		}
		from := rapid.IntRange(0, len(clones)-1).Draw(t, "from")
		for _, r := range records[from+1:] {
			clones[from].Apply(r)
		}
		if got, want := show(clones[from]), show(s); got != want {
			t.Fatalf("folded from event %d:\n%s\nwant\n%s", from+1, got, want)
		}
		for i, c := range clones {
			if i != from && show(c) != shown[i] {
				t.Fatalf("folding a clone of event %d changed the one of event %d", from+1, i+1)
			}
		}
	})
}

// Whenever the model may be asked, every call before has one result, behind it and before
// the next message; and no id is ever used twice.
func TestEveryCallHasOneResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session.State{}
		for _, r := range testkit.History(t) {
			s.Apply(r)
			if _, ok := r.Event.(session.PassStarted); ok {
				checkPairs(t, s.Settled)
			}
			if s.Run == nil {
				checkPairs(t, s.Settled)
			}
		}
		seen := make(map[session.ItemID]bool)
		for _, i := range s.Transcript() {
			if seen[i.ItemID()] {
				t.Fatalf("two items are called %s", i.ItemID())
			}
			seen[i.ItemID()] = true
		}
	})
}

func checkPairs(t *rapid.T, items []session.Item) {
	var open []session.ToolCall
	for _, i := range items {
		switch i := i.(type) {
		case *session.Tool:
			if len(open) == 0 || open[0].Call != i.Call {
				t.Fatalf("result of %s where %v are open", i.Call, open)
			}
			open = open[1:]
		case *session.Assistant:
			if len(open) > 0 {
				t.Fatalf("%v have no result before %s", open, i.ID)
			}
			open = i.Calls()
		case *session.User:
			if len(open) > 0 {
				t.Fatalf("%v have no result before %s", open, i.ID)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v have no result", open)
	}
}

// After a restart at any event a session is idle, or something really drives it.
func TestRecoveredSessionsAreDriven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		s := testkit.Fold(records[:rapid.IntRange(1, len(records)).Draw(t, "crash")])
		apply(s, s.Recover(func(string) bool { return rapid.Bool().Draw(t, "repeatable") }, s.UpdatedAt)...)
		for events := s.Advance(testkit.Policy{T: t}, s.UpdatedAt); len(events) > 0; events = s.Advance(testkit.Policy{T: t}, s.UpdatedAt) {
			apply(s, events...)
		}
		if s.Run != nil && len(s.Effects()) == 0 && !asking(s) {
			t.Fatalf("nothing drives %s", show(s))
		}
	})
}

// asking reports whether a person or a client is asked, which drives a session as well.
func asking(s *session.State) bool {
	for _, t := range s.Run.Batch {
		if t.Query != nil || t.Host == session.HostClient && t.Status == session.Streaming {
			return true
		}
	}
	return false
}

func TestFailMakesIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testkit.Fold(testkit.History(t))
		apply(s, s.Fail("fault")...)
		if s.Run != nil || len(s.Queue) > 0 || len(s.Effects()) > 0 {
			t.Fatalf("not idle: %s", show(s))
		}
		checkPairs(t, s.Settled)
	})
}

func TestAbortEndsTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testkit.Fold(testkit.History(t))
		events, err := s.Decide(session.Abort{})
		if (err != nil) != (s.Run == nil) {
			t.Fatalf("abort: %v while the run is %v", err, s.Run)
		}
		apply(s, events...)
		for n := 0; s.Run != nil; n++ {
			if n > 1000 {
				t.Fatalf("the run does not end: %s", show(s))
			}
			if next := s.Advance(testkit.Policy{T: t}, s.UpdatedAt); len(next) > 0 {
				apply(s, next...)
				continue
			}
			if len(s.Effects()) > 0 {
				t.Fatal("an aborted run wants something to run")
			}
			for _, tool := range s.Run.Batch { // the tools report their end
				if tool.Status == session.Streaming {
					apply(s, session.ToolEnded{Call: tool.Call, IsError: true})
					break
				}
			}
		}
		checkPairs(t, s.Settled)
	})
}

func apply(s *session.State, events ...session.Event) {
	for _, e := range events {
		s.Apply(session.Record{Seq: s.Seq + 1, At: s.UpdatedAt, Event: e})
	}
}

func TestMetaFollowsTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session.State{}
		var m session.Meta
		for _, r := range testkit.History(t) {
			s.Apply(r)
			m.Apply(r)
			if m.Name != s.Name || m.Model != s.Model || m.Thinking != s.Thinking || m.Active != (s.Run != nil) || m.Cwd != s.Cwd || m.CreatedAt != s.CreatedAt {
				t.Fatalf("after event %d the index says %+v, the state %+v", r.Seq, m, s.Head)
			}
		}
	})
}

func TestRunningToolsKeepTheEndOfTheirOutput(t *testing.T) {
	s := running(t)
	line := strings.Repeat("é", 500) + "\n"
	for range 1000 {
		apply(s, session.ToolOutput{Call: "call1-1-0", Text: line})
	}
	out := s.Tool("call1-1-0").Output
	if len(out) > 101<<10 || len(out) < 40<<10 || strings.Trim(out, "é\n") != "" || !strings.HasSuffix(out, line) {
		t.Errorf("%d bytes are shown, beginning %q", len(out), out[:20])
	}
	apply(s, session.ToolOutput{Call: "call1-1-0", Text: "new", Replace: true})
	if out := s.Tool("call1-1-0").Output; out != "new" {
		t.Errorf("replaced output is %q", out)
	}
}

// running returns a session in which one tool runs.
func running(t *testing.T) *session.State {
	t.Helper()
	s := &session.State{}
	created, err := session.New(session.Create{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: session.ThinkingOff})
	if err != nil {
		t.Fatal(err)
	}
	apply(s, created)
	events, err := s.Decide(session.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	apply(s, events...)
	apply(s, s.Advance(yes{}, 0)...)
	apply(s, session.BlockStarted{Block: session.ToolCall{Call: "call1-1-0", Name: "bash"}}, session.BlockEnded{},
		session.PassEnded{Status: session.Complete, Stop: session.StopToolUse})
	apply(s, s.Advance(yes{}, 0)...)
	return s
}

// yes is a policy that allows everything and never makes the context smaller.
type yes struct{}

func (yes) Judge(*session.State, session.ToolCall) session.Verdict { return session.Verdict{} }
func (yes) Shrink(*session.State, bool) (session.Shrink, bool)     { return session.Shrink{}, false }
