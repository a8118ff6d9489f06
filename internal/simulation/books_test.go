package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// said is a message of a person.
type said struct {
	session string
	acked   bool // the server has said that it has it
	steer   bool
}

// texts is the text that somebody was shown of each item, by session and item.
type texts map[string]string

// born adds a session to those that clients know.
func (w *world) born(id string, cursors bool) {
	w.facts.Lock()
	defer w.facts.Unlock()
	if !slices.Contains(w.known, id) {
		w.known = append(w.known, id)
		w.remote[id] = cursors
	}
}

func (w *world) sessions() []string {
	w.facts.Lock()
	defer w.facts.Unlock()
	return slices.Clone(w.known)
}

// say returns the text of a new message.
func (w *world) say() string {
	w.facts.Lock()
	defer w.facts.Unlock()
	w.messages++
	text := "m" + strconv.Itoa(w.messages) + "."
	w.said[text] = &said{}
	return text
}

// acked notes that the server has taken a message.
func (w *world) acked(id, text string, steer bool) {
	w.facts.Lock()
	defer w.facts.Unlock()
	*w.said[text] = said{session: id, acked: true, steer: steer}
}

func (w *world) aborted(id string) {
	w.facts.Lock()
	defer w.facts.Unlock()
	w.abortedIn[id] = true
}

// rewinds notes that messages are taken away from a session, whatever comes of it.
func (w *world) rewinds(id string) {
	w.facts.Lock()
	defer w.facts.Unlock()
	w.rewound[id] = true
}

func (w *world) deleted(id string) bool {
	w.facts.Lock()
	defer w.facts.Unlock()
	return w.gone[id] || w.remote[id] // a conversation is a session once its client has said something
}

// looked compares what somebody is shown of a session with what it was shown before: texts grow, and
// nothing is said twice.
func (w *world) looked(seen *texts, who, id string, items []shownItem) {
	if *seen == nil {
		*seen = make(texts)
	}
	for _, i := range items {
		key := id + "/" + i.id
		if old := (*seen)[key]; !strings.HasPrefix(i.text, old) {
			w.fail("%s saw %q of item %s, and then %q", who, old, i.id, i.text)
		}
		(*seen)[key] = i.text
	}
	w.once(who, items)
}

// once checks that no word of a model and no message of a person is there twice, and that the words
// come in the order in which they were said.
func (w *world) once(who string, items []shownItem) {
	last := 0
	people := make(map[string]bool)
	for _, i := range items {
		if i.user {
			for word := range strings.FieldsSeq(i.text) {
				if word[0] == 'm' && strings.HasSuffix(word, ".") && people[word] {
					w.fail("%s sees the message %s twice in %+v", who, word, items)
				}
				people[word] = true
			}
			continue
		}
		last = w.rising(who, i.text, last)
	}
}

// rising checks that the words of a text come after the last one.
func (w *world) rising(who, text string, last int) int {
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(strings.TrimPrefix(word, "w"))
		switch {
		case err != nil:
			continue // of the server
		case n <= last:
			w.fail("%s sees w%d after w%d in %q", who, n, last, text)
		}
		last = n
	}
	return last
}

// turned notes how a turn of a Cursor client has ended.
func (w *world) turned(p *cursorClient, text string, res *cursortest.Result, err error) {
	if res == nil {
		w.fail("%s: %v", p.name, err)
		return
	}
	for _, v := range res.Violations {
		w.fail("%s: the protocol was broken: %s", p.name, v)
	}
	w.rising(p.name, res.Text, 0)
	w.facts.Lock()
	defer w.facts.Unlock()
	*w.said[text] = said{session: p.session}
	if err == nil {
		w.lastTurn[p] = text
	} else {
		w.lastTurn[p] = ""
	}
}

// lastOf is the last event of a session on the disk.
func lastOf(w *world, id string) (session.Seq, error) {
	s, err := eventlog.Restore(context.Background(), w.log, session.ID(id))
	if err != nil {
		return 0, err
	}
	return s.Seq, nil
}

// settle checks, when all is over, that what was promised was kept.
func (w *world) settle() {
	for _, id := range w.sessions() {
		stored, err := eventlog.Restore(context.Background(), w.log, session.ID(id))
		if err != nil {
			if !w.deleted(id) {
				w.fail("session %s: %v", id, err)
			}
			continue
		}
		state, err := w.proc.engine.State(w.ctx, session.ID(id))
		if err != nil {
			w.fail("session %s: %v", id, err)
			continue
		}
		if a, b := fmt.Sprint(stateItems(stored)), fmt.Sprint(stateItems(state)); a != b || stored.Seq != state.Seq {
			w.fail("session %s: the disk gives %d %s, the server has %d %s", id, stored.Seq, a, state.Seq, b)
		}
		w.once("the end of "+id, stateItems(state))
		w.results(id, state)
		w.kept(id, state)
		for _, p := range w.pis {
			if p.c != nil && p.c.Err() == nil {
				p.settle(id, state)
			}
		}
	}
	for _, p := range w.cursors {
		for call, n := range p.c.Ran() {
			if n > 1 && w.dangerous(p, call) {
				w.fail("%s ran the call %s %d times", p.name, call, n)
			}
		}
	}
}

// dangerous reports whether a call of a client's tool must not run twice.
func (w *world) dangerous(p *cursorClient, call string) bool {
	return slices.ContainsFunc(p.c.Executions(), func(e cursortest.Execution) bool {
		return e.ToolCallID == call && e.Kind == "mcp_args"
	})
}

// results checks that every call has one result.
func (w *world) results(id string, s *session.State) {
	results := make(map[session.CallID]int)
	for _, i := range s.Transcript() {
		if t, ok := i.(*session.Tool); ok {
			results[t.Call]++
			if t.Status == session.Streaming {
				w.fail("session %s: the call %s has not ended", id, t.Call)
			}
		}
	}
	for _, i := range s.Transcript() {
		a, ok := i.(*session.Assistant)
		if !ok {
			continue
		}
		if a.Status == session.Streaming {
			w.fail("session %s: %s still streams", id, a.ID)
		}
		for _, c := range a.Calls() {
			if results[c.Call] != 1 {
				w.fail("session %s: the call %s has %d results", id, c.Call, results[c.Call])
			}
		}
	}
}

// kept checks that every message that was taken is there. A client of Cursor's protocol may take
// back what its own state does not name, so of its sessions only the last turn counts; an abort takes
// back what is queued, and a rewind what it says.
func (w *world) kept(id string, s *session.State) {
	w.facts.Lock()
	defer w.facts.Unlock()
	if w.rewound[id] {
		return
	}
	found := make(map[string]bool)
	for _, i := range stateItems(s) {
		if i.user {
			for word := range strings.FieldsSeq(i.text) {
				found[word] = true
			}
		}
	}
	for text, m := range w.said {
		due := m.session == id && m.acked && !w.remote[id] && (!m.steer || !w.abortedIn[id])
		if due && !found[text] {
			w.failure = orFirst(w.failure, fmt.Sprintf("session %s has lost the message %s", id, text))
		}
	}
	for p, text := range w.lastTurn {
		if p.session == id && text != "" && !found[text] {
			w.failure = orFirst(w.failure, fmt.Sprintf("session %s has lost the message %s of %s", id, text, p.name))
		}
	}
}

func orFirst(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

func (w *world) fail(format string, args ...any) {
	w.facts.Lock()
	defer w.facts.Unlock()
	w.failure = orFirst(w.failure, fmt.Sprintf(format, args...))
}

// note writes a line of the story.
func (w *world) note(format string, args ...any) {
	w.telling.Lock()
	defer w.telling.Unlock()
	line := fmt.Sprintf("%s %s\n", time.Since(w.began), fmt.Sprintf(format, args...))
	_, _ = io.WriteString(w.story, line)
}

// lines are the server's own, for the story.
type lines struct{ w *world }

func (l lines) Write(b []byte) (int, error) {
	l.w.note("%s", bytes.TrimSpace(b))
	return len(b), nil
}
