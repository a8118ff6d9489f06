package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// errLeft says that the consumer has left the loop, so that nothing may be yielded.
var errLeft = errors.New("the consumer left")

// player performs the steps of one pass.
type player struct {
	ctx     context.Context // of this one request
	yield   func(provider.Part, error) bool
	scope   scope
	attempt int // from 0
	skip    int // bytes of text that came through before; nothing is done until they are passed
	calls   int
	usage   session.Usage
	counted bool // the script gave the usage
	stop    session.StopReason
}

// play performs the steps and ends with Finish or an error.
func (p *player) play(steps []step) {
	err := p.perform(steps)
	if err != nil && !errors.Is(err, errLeft) {
		p.yield(provider.Part{}, err)
	}
}

func (p *player) perform(steps []step) error {
	for _, st := range steps {
		if err := p.step(st); err != nil {
			return err
		}
	}
	if p.stop == session.StopNone {
		p.stop = session.StopEnd
		if p.calls > 0 {
			p.stop = session.StopToolUse
		}
	}
	if err := p.give(provider.Part{Kind: provider.UsageReport, Usage: p.usage}); err != nil {
		return err
	}
	return p.give(provider.Part{Kind: provider.Finish, Stop: p.stop})
}

func (p *player) give(part provider.Part) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if !p.yield(part, nil) {
		return errLeft
	}
	return nil
}

func (p *player) step(st step) error {
	switch {
	case st.Usage != nil:
		u := st.Usage
		p.usage = session.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning}
		p.counted = true
	case st.Stop != "":
		p.stop = stops[st.Stop]
	case st.Text != nil:
		return p.speak(st, *st.Text, provider.TextDelta)
	case p.skip > 0: // it was done before the cut
	case st.Think != nil:
		return p.think(st)
	case st.Tool != nil:
		return p.tool(st)
	case st.Hang:
		<-p.ctx.Done()
		return p.ctx.Err()
	case st.Error != nil:
		return p.fail(st)
	default:
		d, err := duration(p.scope.expand(st.Delay))
		if err != nil {
			return broken(err)
		}
		return p.wait(time.Now().Add(d))
	}
	return nil
}

// broken reports a value that only the prompt made wrong.
func broken(err error) error { return provider.Errorf(provider.FaultRequest, "the script: %v", err) }

func (p *player) fail(st step) error {
	if st.Times > 0 && p.attempt >= st.Times {
		return nil
	}
	after, err := duration(p.scope.expand(st.Error.RetryAfter))
	if err != nil {
		return broken(err)
	}
	message := p.scope.expand(st.Error.Message)
	if message == "" {
		message = "the script says so: " + st.Error.Fault
	}
	return &provider.Error{Fault: faults[st.Error.Fault], Message: message, RetryAfter: after}
}

func (p *player) think(st step) error {
	if err := p.speak(st, *st.Think, provider.ReasoningDelta); err != nil {
		return err
	}
	return p.give(provider.Part{Kind: provider.ReasoningEnd})
}

// cutAt returns after how many bytes of text a step breaks the connection, or -1.
func (p *player) cutAt(st step, text string) int {
	if st.Cut == nil || st.Times > 0 && p.attempt >= st.Times {
		return -1
	}
	n := 0
	for left := *st.Cut; left > 0 && n < len(text); left-- {
		_, size := utf8.DecodeRuneInString(text[n:])
		n += size
	}
	return n
}

var errCut = provider.Errorf(provider.FaultNetwork, "the connection broke before the answer was complete")

// speak streams a text in pieces.
func (p *player) speak(st step, text string, kind provider.PartKind) error {
	text = strings.ToValidUTF8(p.scope.expand(text), "\uFFFD")
	pace, err := p.pace(st)
	if err != nil {
		return err
	}
	repeat, err := number(p.scope.expand(st.Repeat), 1)
	if err != nil {
		return broken(err)
	}
	cut := p.cutAt(st, text)
	if kind == provider.TextDelta && p.skip > 0 && p.skip >= cut {
		cut = -1 // a continuation from behind the cut does not break there again
	}
	if cut >= 0 {
		text, repeat = text[:cut], 1
	}
	pieces := split(text, st.Chunk)
	for range repeat {
		for _, piece := range pieces {
			if err := p.piece(piece, kind, pace); err != nil {
				return err
			}
		}
	}
	if cut >= 0 {
		return errCut
	}
	return nil
}

// piece says one piece, or what of it did not come through before.
func (p *player) piece(piece string, kind provider.PartKind, pace *pace) error {
	if kind == provider.TextDelta && p.skip > 0 {
		n := min(p.skip, len(piece))
		for n < len(piece) && !utf8.RuneStart(piece[n]) {
			n++
		}
		p.skip -= min(p.skip, n)
		if piece = piece[n:]; piece == "" {
			return nil
		}
	}
	if pace.interval > 0 {
		pace.next = pace.next.Add(pace.interval)
		if err := p.wait(pace.next); err != nil {
			return err
		}
	}
	if !p.counted {
		p.usage.Output++
		if kind == provider.ReasoningDelta {
			p.usage.Reasoning++
		}
	}
	return p.give(provider.Part{Kind: kind, Text: piece})
}

// pace is when the pieces of a text are due: on a fixed schedule, so that a slow consumer
// does not stretch it.
type pace struct {
	interval time.Duration
	next     time.Time
}

func (p *player) pace(st step) (*pace, error) {
	every, err := duration(p.scope.expand(st.Every))
	if err != nil {
		return nil, broken(err)
	}
	if st.Rate != "" {
		n, err := number(p.scope.expand(st.Rate), 1)
		if err != nil {
			return nil, broken(err)
		}
		every = time.Second / time.Duration(n)
	}
	pc := &pace{interval: every}
	if every > 0 {
		pc.next = time.Now()
	}
	return pc, nil
}

// wait returns at a time, or earlier with the context's error.
func (p *player) wait(until time.Time) error {
	d := time.Until(until)
	if d <= 0 {
		return p.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// tool calls a tool.
func (p *player) tool(st step) error {
	key := p.calls
	p.calls++
	name, input := p.scope.expand(st.Tool.Name), "{}"
	if st.Tool.Raw != nil {
		input = strings.ToValidUTF8(p.scope.expand(*st.Tool.Raw), "\uFFFD")
	} else if st.Tool.Input != nil {
		encoded, err := json.Marshal(p.scope.value(st.Tool.Input)) // sorted by name
		if err != nil {
			return broken(err)
		}
		input = string(encoded)
	}
	cut := p.cutAt(st, input)
	if cut >= 0 {
		input = input[:cut]
	}
	parts := []provider.Part{{Kind: provider.CallStart, Key: key, Name: name}}
	if input != "" {
		parts = append(parts, provider.Part{Kind: provider.CallDelta, Key: key, Text: input})
	}
	if cut < 0 {
		parts = append(parts, provider.Part{Kind: provider.CallEnd, Key: key})
	}
	for _, part := range parts {
		if err := p.give(part); err != nil {
			return err
		}
	}
	if !p.counted {
		p.usage.Output += int64(len(input)/4) + 1
	}
	if cut >= 0 {
		return errCut
	}
	return nil
}

// split cuts a text into pieces of n characters, or of a word with the blanks behind it
// when n is 0.
func split(text string, n int) []string {
	var pieces []string
	begin, runes, blank := 0, 0, false
	for i, r := range text {
		space := r == ' ' || r == '\n' || r == '\t'
		if i > begin && (n > 0 && runes == n || n == 0 && blank && !space) {
			pieces = append(pieces, text[begin:i])
			begin, runes = i, 0
		}
		runes++
		blank = space
	}
	if begin < len(text) {
		pieces = append(pieces, text[begin:])
	}
	return pieces
}
