package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const (
	awaitBlock   = 30_000                  // ms to wait unless the call says
	awaitMost    = 3_600_000               // ms to wait at most
	awaitPattern = 1000                    // bytes of a pattern
	awaitText    = 16 << 10                // bytes of output for the model
	awaitPoll    = 1500 * time.Millisecond // between two looks at a terminal's file
	awaitRead    = 30 * time.Second        // that a look may take
)

const awaitDescription = `Wait for a command that Shell left in the background: until it ends, until pattern matches its output, ` +
	`or until block_until_ms has passed, whichever comes first. Returns its output and, when it has ended, its exit code. ` +
	`Wait long enough at once rather than often; block_until_ms 0 only looks. Without shell_id it just sleeps.`

const awaitSchema = `{
"type": "object",
"properties": {
	"shell_id": {"type": "number", "description": "The shell_id that Shell returned; leave it out to sleep"},
	"block_until_ms": {"type": "number", "minimum": 0, "maximum": 3600000, "description": "How long to wait at most, in milliseconds; 30000 when left out, 0 to look only (then shell_id is required)"},
	"pattern": {"type": "string", "maxLength": 1000, "description": "Regular expression (RE2; ^ and $ match at lines); the wait is over when the output matches it"}
}
}`

// awaitInput is what a model gives to AwaitShell.
type awaitInput struct {
	Shell   *shellID      `json:"shell_id"`
	Block   *milliseconds `json:"block_until_ms"`
	Pattern string        `json:"pattern"`
}

func (in *awaitInput) check() error {
	if in.Shell == nil && in.Block != nil && *in.Block == 0 {
		return errors.New("with block_until_ms 0 there is nothing to wait for: give a shell_id to look at")
	}
	if in.Shell == nil && in.Pattern != "" {
		return errors.New("a pattern needs the shell_id of the command whose output it is for")
	}
	if len(in.Pattern) > awaitPattern {
		return fmt.Errorf("the pattern is longer than %d bytes", awaitPattern)
	}
	return nil
}

func (in *awaitInput) block() time.Duration {
	if in.Block == nil {
		return awaitBlock * time.Millisecond
	}
	return time.Duration(min(*in.Block, awaitMost)) * time.Millisecond
}

func (in *awaitInput) task() string {
	if in.Shell == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*in.Shell), 10)
}

// await waits for a background shell, or sleeps (section 5.4). While the client streams what the
// shell prints, it goes by that; otherwise it reads the terminal's file.
type await struct {
	quiet
	call     Call
	in       awaitInput
	env      *Env
	match    *regexp.Regexp
	timer    timer
	file     *terminal // nil while the shell is streamed
	requests int       // made so far
	seen     uint64    // bytes of the shell that the pattern was looked for in
}

func beginAwait(call Call, args json.RawMessage, env *Env) Machine {
	a := &await{call: call, env: env}
	err := decode(args, &a.in)
	if err == nil && a.in.Pattern != "" {
		a.match, err = regexp.Compile("(?m)" + a.in.Pattern)
	}
	if err != nil {
		return settled{Outcome: *a.fail("AwaitShell error: " + err.Error()).Done}
	}
	a.timer.after = a.in.block()
	return a
}

func awaitCard(args json.RawMessage) *agentv1.ToolCall {
	var in awaitInput
	peek(args, &in)
	return in.card(nil)
}

func (in *awaitInput) card(res *agentv1.AwaitResult) *agentv1.ToolCall {
	a := &agentv1.AwaitArgs{TaskId: in.task(), BlockUntilMs: new(uint32(in.block() / time.Millisecond))}
	if in.Pattern != "" {
		a.Regex = new(in.Pattern)
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_AwaitToolCall{AwaitToolCall: &agentv1.AwaitToolCall{Args: a, Result: res}}}
}

// Start looks at once.
func (a *await) Start() Step {
	if a.in.Shell == nil {
		return Step{Wake: tickNow}
	}
	if b := a.followed(); b != nil {
		if st := a.look(b, a.timer.after == 0); st.Done != nil {
			return st
		}
		return Step{Wake: tickNow}
	}
	return a.poll()
}

// followed returns the shell when it is known how it fares, nil when its file has to be read.
func (a *await) followed() *background {
	if b := a.env.Shells.byID[uint32(*a.in.Shell)]; b != nil && (b.live || b.ended) {
		return b
	}
	return nil
}

// look ends the wait when there is a reason to, or when it is the last look.
func (a *await) look(b *background, last bool) Step {
	v := view{ended: b.ended, code: b.code, printed: b.printed, file: b.File}
	if a.match != nil && b.printed != a.seen {
		a.seen = b.printed
		v.find(a.match, b.out.last(shellAwait))
	}
	if !v.ended && v.found == nil && !last {
		return Step{}
	}
	v.output = b.out.last(awaitText)
	return a.done(&v)
}

// Tick goes on with what has come, and ends the wait in time.
func (a *await) Tick(now time.Time) Step {
	over, wake := a.timer.tick(now)
	switch {
	case a.in.Shell == nil && over:
		return a.slept()
	case a.in.Shell == nil:
		return Step{Wake: wake}
	}
	if b := a.followed(); b != nil {
		if st := a.look(b, over); st.Done != nil {
			return st
		}
		return Step{Wake: wake}
	}
	return a.pollAt(now, over, wake)
}

func (a *await) slept() Step {
	ms := a.timer.passed().Milliseconds()
	return Step{Done: &Outcome{
		Text: fmt.Sprintf("Slept for %d ms.", ms),
		Card: a.in.card(&agentv1.AwaitResult{Result: &agentv1.AwaitResult_Complete{Complete: &agentv1.AwaitTaskComplete{
			RuntimeMs: uint64(ms), WakeReason: new("timeout"),
		}}}),
	}}
}

func (a *await) fail(text string) Step {
	return Step{Done: &Outcome{Text: text, IsError: true, Card: a.in.card(&agentv1.AwaitResult{
		Result: &agentv1.AwaitResult_Error{Error: &agentv1.AwaitError{Error: text}},
	})}}
}
