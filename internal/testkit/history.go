// Package testkit is what tests of several packages share.
package testkit

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/session"
)

// History draws a possible history of a session: everything in it follows from commands,
// answers, tools, faults and restarts in the way the engine lets them happen.
func History(t *rapid.T) []session.Record {
	h := &history{t: t, state: &session.State{}}
	h.emit(session.Created{ID: "s1", Cwd: "/work", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: session.ThinkingOff})
	for n := rapid.IntRange(1, 60).Draw(t, "steps"); n > 0; n-- {
		h.step()
		h.advance()
	}
	return h.records
}

// Fold returns the state after records.
func Fold(records []session.Record) *session.State {
	s := &session.State{}
	for _, r := range records {
		s.Apply(r)
	}
	return s
}

// Policy is a policy that answers by chance.
type Policy struct{ T *rapid.T }

// Judge allows, asks or refuses; what a client offers it also runs.
func (p Policy) Judge(s *session.State, _ session.ToolCall) session.Verdict {
	if s.Run.Offer != "" {
		return session.Verdict{Host: session.HostClient}
	}
	switch rapid.IntRange(0, 5).Draw(p.T, "verdict") {
	case 0:
		return session.Verdict{Query: &session.Query{Reason: "why", Grants: []string{"grant"}}, Limit: rapid.Int64Range(0, 50).Draw(p.T, "limit")}
	case 1:
		return session.Verdict{Refusal: "not allowed"}
	}
	return session.Verdict{}
}

// Shrink sometimes makes the context smaller, up to a message of the person.
func (p Policy) Shrink(s *session.State, force bool) (session.Shrink, bool) {
	if !force && rapid.IntRange(0, 9).Draw(p.T, "shrink") > 0 {
		return session.Shrink{}, false
	}
	var how session.Shrink
	for i, item := range s.Settled {
		if _, ok := item.(*session.User); ok && rapid.Bool().Draw(p.T, "cut") {
			how.Summarize, how.Shorten = i, i
		}
	}
	if rapid.Bool().Draw(p.T, "shorten") {
		how.Summarize = 0
	}
	return how, true
}

type history struct {
	t       *rapid.T
	state   *session.State
	records []session.Record
	at      int64
}

func (h *history) emit(events ...session.Event) {
	for _, e := range events {
		h.at += 10
		r := session.Record{Seq: h.state.Seq + 1, At: h.at, Event: e}
		h.state.Apply(r)
		h.records = append(h.records, r)
	}
}

func (h *history) advance() {
	for {
		events := h.state.Advance(Policy{h.t}, h.at)
		if len(events) == 0 {
			return
		}
		h.emit(events...)
	}
}

func (h *history) do(cmd session.Command) {
	if events, err := h.state.Decide(cmd); err == nil {
		h.emit(events...)
	}
}

func (h *history) step() {
	s := h.state
	if rapid.IntRange(0, 19).Draw(h.t, "rare") == 0 {
		h.rare()
		return
	}
	switch {
	case s.Run != nil && s.Run.Compaction != nil:
		h.emit(s.EndCompaction(h.text(), &session.Usage{Output: 1}, rapid.SampledFrom([]string{"", "failed"}).Draw(h.t, "failure")))
	case s.Run == nil && rapid.IntRange(0, 4).Draw(h.t, "resume") == 0:
		h.do(session.Resume{Offer: h.offer()})
	case s.Run == nil:
		h.do(session.Prompt{ID: fmt.Sprintf("p%d", s.Users), Text: h.text(), Offer: h.offer(), Keep: []session.FrontSet{{Key: "run", Value: []byte("1")}}})
	case s.Run.Wait != nil:
		h.at = s.Run.Wait.Until
	case s.Run.Live != nil:
		h.stream()
	default:
		h.tool()
	}
	if rapid.IntRange(0, 7).Draw(h.t, "steer") == 0 {
		h.do(session.Steer{Text: h.text()})
	}
}

func (h *history) rare() {
	s := h.state
	switch rapid.IntRange(0, 10).Draw(h.t, "what") {
	case 0:
		h.do(session.Abort{})
	case 1:
		h.do(session.Rename{Name: h.text()})
	case 2:
		h.do(session.SetThinking{Thinking: session.ThinkingHigh, Levels: session.ThinkingLevels})
	case 4:
		h.do(session.SetMode{Mode: session.ModePlan})
	case 5:
		if len(s.Settled) > 0 {
			h.do(session.Rewind{Item: s.Settled[rapid.IntRange(0, len(s.Settled)-1).Draw(h.t, "rewind")].ItemID()})
		}
	case 6:
		h.do(session.Compact{Through: rapid.IntRange(0, len(s.Settled)).Draw(h.t, "through")})
	case 7:
		if s.Run == nil {
			h.emit(session.NoteAdded{Item: session.NoteItemID(s), Note: session.NoteContext, Text: h.text(), Context: "hash"})
		}
	case 8:
		h.do(session.Tell{Text: h.text()})
	case 9:
		h.do(session.Replace{Keep: rapid.IntRange(0, len(s.Settled)).Draw(h.t, "keep")})
	case 10:
		h.do(session.Report{Mode: session.ModeAsk, Offer: "other", Keep: []session.FrontSet{{Key: h.text(), Value: []byte(h.text())}}})
	case 3:
		h.emit(h.state.Recover(func(tool string) bool { return tool == "read" }, h.at)...)
	}
}

// offer is the tools of a client, or nothing.
func (h *history) offer() string {
	return rapid.SampledFrom([]string{"", "", "offer"}).Draw(h.t, "offer")
}

func (h *history) text() string { return rapid.StringN(0, 6, 30).Draw(h.t, "text") }

// stream adds to the answer that streams in, or ends it.
func (h *history) stream() {
	live := h.state.Run.Live
	kinds := []string{"text", "reasoning", "call", "end"}
	if len(live.Blocks) > 0 {
		kinds = append(kinds, "delta", "delta", "delta", "close", "break", "overflow")
	}
	switch rapid.SampledFrom(kinds).Draw(h.t, "stream") {
	case "text":
		h.emit(session.BlockStarted{Block: session.Text{}})
	case "reasoning":
		h.emit(session.BlockStarted{Block: session.Reasoning{}})
	case "call":
		id := session.NewCallID(h.state.Run.ID, h.state.Run.Pass, len(live.Calls()))
		name := rapid.SampledFrom([]string{"read", "bash"}).Draw(h.t, "tool")
		h.emit(session.BlockStarted{Block: session.ToolCall{Call: id, Name: name}})
	case "delta":
		h.delta(rapid.IntRange(0, len(live.Blocks)-1).Draw(h.t, "index"))
	case "close":
		i := len(live.Blocks) - 1
		if _, ok := live.Blocks[i].(session.Text); !ok {
			h.emit(session.BlockEnded{Index: i, Signature: "signature"})
		}
	case "break":
		h.emit(h.state.Break("broken", rapid.Bool().Draw(h.t, "retry"), 1000, h.at)...)
	case "overflow":
		h.emit(h.state.Overflow("too large", h.at)...)
	case "end":
		stop := rapid.SampledFrom([]session.StopReason{session.StopEnd, session.StopToolUse, session.StopLength}).Draw(h.t, "stop")
		h.emit(session.PassEnded{Status: session.Complete, Stop: stop, Usage: &session.Usage{Input: 3, Output: 4}})
	}
}

// delta adds text that fits its block: a call's is a piece of valid JSON, and a complete one
// gets no more.
func (h *history) delta(i int) {
	text := h.text()
	if c, ok := h.state.Run.Live.Blocks[i].(session.ToolCall); ok {
		const whole = `{"path":"a b","n":[1,2,{"x":null}]}`
		if c.Complete || len(c.Input) == len(whole) {
			return
		}
		n := rapid.IntRange(1, len(whole)-len(c.Input)).Draw(h.t, "cut")
		text = whole[len(c.Input) : len(c.Input)+n]
	}
	if text != "" {
		h.emit(session.Delta{Index: i, Text: text})
	}
}

func (h *history) tool() {
	for _, item := range h.state.Run.Batch {
		if item.Status != session.Streaming {
			continue
		}
		if item.Query != nil {
			h.do(session.Answer{Call: item.Call, Allow: rapid.Bool().Draw(h.t, "allow"), Scope: session.Scope(rapid.IntRange(0, 2).Draw(h.t, "scope"))})
			return
		}
		if item.Host == session.HostClient {
			h.client(item.Call)
			return
		}
		if rapid.Bool().Draw(h.t, "output") {
			h.emit(session.ToolOutput{Call: item.Call, Text: h.text(), Replace: rapid.Bool().Draw(h.t, "replace")})
			return
		}
		h.emit(session.ToolEnded{
			Call: item.Call, Output: h.text(), IsError: rapid.Bool().Draw(h.t, "error"), Details: json.RawMessage(`{"d":1.5}`),
		})
		return
	}
}

// client reports what a client has to say of a call, perhaps more than once.
func (h *history) client(call session.CallID) {
	r := session.Report{}
	if rapid.Bool().Draw(h.t, "issued") {
		r.Issued = []session.CallID{call, call}
	}
	if text := h.text(); text != "" {
		r.Output = []session.ToolOutput{{Call: call, Text: text}}
	}
	for range rapid.IntRange(0, 2).Draw(h.t, "results") {
		r.Ended = append(r.Ended, session.ToolEnded{
			Call: call, Output: h.text(), IsError: rapid.Bool().Draw(h.t, "error"), Last: rapid.Bool().Draw(h.t, "last"),
		})
	}
	h.do(r)
}
