package cursorview

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// Limits on what is taken over from a client. An item has to fit one event of the log.
const (
	maxText   = session.MaxPrompt // bytes of a message or an answer
	maxOutput = 32 << 10          // bytes of a result, and of arguments
	maxItems  = 50_000            // items and steps; what is beyond is left out
	maxKept   = 128 << 10         // bytes of a card as JSON, where some characters take six
	maxCalls  = 100               // calls of one answer; more of them are another answer's
	maxRead   = 256 << 20         // bytes of all entries and blobs that are looked at
)

// importer makes items of turns.
type importer struct {
	model session.ModelRef
	at    int64
	run   session.RunID
	users uint32
	turns int
	items []session.Item

	pass  int
	live  *session.Assistant // the answer that steps are added to, not yet among the items
	bytes int                // of the texts in it
	tools []*session.Tool    // the results of its calls
}

// importTurns makes items of turns, which come after those of s.
func importTurns(s *session.State, turns []theirTurn) *importer {
	im := &importer{model: s.Model, at: s.UpdatedAt, run: s.LastRun, users: s.Users}
	for i := range turns {
		if len(im.items) >= maxItems {
			break
		}
		im.turn(&turns[i])
	}
	return im
}

func (im *importer) turn(t *theirTurn) {
	im.turns++
	im.run++
	im.users++
	im.pass = 0
	im.items = append(im.items, &session.User{
		ID: session.ItemID(fmt.Sprintf("u%d", im.users)), Run: im.run, Prompt: promptID(t.id),
		Blocks: []session.Block{session.Text{Text: t.text}}, At: im.at,
	})
	for _, s := range t.steps {
		im.step(s)
	}
	im.endPass()
}

// promptID returns the client's id of a message if it may be that of a prompt.
func promptID(id string) string {
	if len(id) > session.MaxPromptID || id != strings.ToValidUTF8(id, "") {
		return ""
	}
	return id
}

// step adds a step to the answer. What is said after a call belongs to the next pass.
func (im *importer) step(s step) {
	if s.tool == nil && (s.text == "" || s.thought && s.text == hiddenThinking) {
		return
	}
	size := len(s.text)
	if s.tool != nil {
		size = len(s.tool.input)
	}
	if len(im.tools) > 0 && s.tool == nil || len(im.tools) == maxCalls || im.live != nil && im.bytes+size > maxText {
		im.endPass()
	}
	if im.live == nil {
		im.pass++
		im.live = &session.Assistant{
			ID: session.ItemID(fmt.Sprintf("a%d-%d", im.run, im.pass)), Run: im.run, Pass: im.pass, Model: im.model,
			Status: session.Complete, Stop: session.StopEnd, At: im.at,
		}
	}
	im.bytes += size
	switch {
	case s.tool != nil:
		im.tool(s.tool)
	case s.thought:
		im.live.Blocks = append(im.live.Blocks, session.Reasoning{Text: s.text})
	default:
		im.live.Blocks = append(im.live.Blocks, session.Text{Text: s.text})
	}
}

func (im *importer) tool(t *theirTool) {
	call := session.NewCallID(im.run, im.pass, len(im.tools))
	im.live.Stop = session.StopToolUse
	im.live.Blocks = append(im.live.Blocks, session.ToolCall{Call: call, Name: t.name, Input: t.input, Complete: true})
	item := &session.Tool{
		ID: session.ItemID("t" + strings.TrimPrefix(string(call), "call")), Run: im.run, Call: call, Name: t.name, Input: t.input,
		Host: session.HostClient, Status: session.Complete, Output: t.output, Details: EncodeCard(t.card), At: im.at,
	}
	if t.failed {
		item.Status = session.Failed
	}
	if len(item.Details) > maxKept {
		item.Details = nil // the card is made of the output then
	}
	im.tools = append(im.tools, item)
}

func (im *importer) endPass() {
	if im.live == nil {
		return
	}
	im.items = append(im.items, im.live)
	for _, t := range im.tools {
		im.items = append(im.items, t)
	}
	im.live, im.tools, im.bytes = nil, nil, 0
}
