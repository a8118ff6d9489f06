package cursortest

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// checker notes which rules of the protocol the server breaks in a run (sections 4.2, 4.8 and 6). Its
// methods are for the loop of the attempt, except add.
type checker struct {
	c       *Client
	attempt int

	// Over the attempts of the run: calls that started and have no result.
	open map[string]bool

	// In the current attempt.
	started, completed map[string]bool
	execs              map[uint32]bool
	thinking, ended    bool
	progress           bool // anything but heartbeats came of the model
	last               time.Time

	mu         sync.Mutex
	violations []string
}

func newChecker(c *Client) *checker { return &checker{c: c, open: map[string]bool{}} }

// add notes a violation; safe for concurrent use.
func (k *checker) add(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.violations = append(k.violations, text)
}

func (k *checker) broken(format string, args ...any) {
	k.add(fmt.Sprintf("attempt %d: ", k.attempt) + fmt.Sprintf(format, args...))
}

func (k *checker) found() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.violations...)
}

// begin starts the checks of another attempt.
func (k *checker) begin(*Attempt) {
	k.attempt++
	k.started, k.completed, k.execs = map[string]bool{}, map[string]bool{}, map[uint32]bool{}
	k.thinking, k.ended, k.progress = false, false, false
	k.last = time.Now()
}

func (k *checker) message(m *agentv1.AgentServerMessage, at time.Time) {
	k.gap(at)
	switch m := m.GetMessage().(type) {
	case *agentv1.AgentServerMessage_InteractionUpdate:
		k.update(m.InteractionUpdate)
	case *agentv1.AgentServerMessage_ExecServerMessage:
		k.afterEnd("an execution")
		k.exec(m.ExecServerMessage)
	case *agentv1.AgentServerMessage_InteractionQuery:
		k.afterEnd("a query")
	case *agentv1.AgentServerMessage_ConversationCheckpointUpdate:
		k.checkpoint(m.ConversationCheckpointUpdate)
	case *agentv1.AgentServerMessage_KvServerMessage:
		if set := m.KvServerMessage.GetSetBlobArgs(); set != nil {
			if id := cursorwire.BlobIDOf(set.GetBlobData()); string(id.Bytes()) != string(set.GetBlobId()) {
				k.broken("the blob %x has the hash %s", set.GetBlobId(), id)
			}
		}
	}
}

func (k *checker) gap(at time.Time) {
	if gap := at.Sub(k.last); gap > k.c.o.MaxGap {
		k.broken("silence of %v, above %v", gap.Round(time.Millisecond), k.c.o.MaxGap)
	}
	k.last = at
}

func (k *checker) afterEnd(what string) {
	if k.ended {
		k.broken("%s after turn_ended", what)
	}
}

func (k *checker) update(u *agentv1.InteractionUpdate) {
	if u.GetHeartbeat() != nil {
		return
	}
	k.afterEnd(arm(u, "message"))
	k.progress = true
	switch m := u.GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		k.afterThinking("text")
		if m.TextDelta.GetText() == "" {
			k.broken("an empty text_delta")
		}
	case *agentv1.InteractionUpdate_ThinkingDelta:
		k.thinking = true
	case *agentv1.InteractionUpdate_ThinkingCompleted:
		if !k.thinking {
			k.broken("thinking_completed without thinking")
		}
		k.thinking = false
	case *agentv1.InteractionUpdate_PartialToolCall:
		k.afterThinking("a tool call")
	case *agentv1.InteractionUpdate_ToolCallStarted:
		k.afterThinking("a tool call")
		k.start(m.ToolCallStarted)
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		k.complete(m.ToolCallCompleted)
	case *agentv1.InteractionUpdate_TurnEnded:
		k.afterThinking("turn_ended")
		k.ended = true
	}
}

func (k *checker) afterThinking(what string) {
	if k.thinking {
		k.broken("%s before thinking_completed", what)
		k.thinking = false
	}
}

func (k *checker) start(m *agentv1.ToolCallStartedUpdate) {
	id := m.GetCallId()
	k.card(id, m.GetToolCall(), "started")
	if k.started[id] {
		k.broken("the call %q started twice", id)
	}
	k.c.mu.Lock()
	if k.c.over[id] {
		k.broken("the call id %q was used in an earlier run", id)
	}
	k.c.mu.Unlock()
	k.started[id], k.open[id] = true, true
}

func (k *checker) complete(m *agentv1.ToolCallCompletedUpdate) {
	id := m.GetCallId()
	k.card(id, m.GetToolCall(), "completed")
	switch {
	case k.completed[id]:
		k.broken("the call %q completed twice", id)
	case !k.open[id]:
		k.broken("the call %q completed and had not started", id)
	}
	k.completed[id] = true
	delete(k.open, id)
}

// card checks the tool call that an update shows.
func (k *checker) card(id string, call *agentv1.ToolCall, what string) {
	switch {
	case call.GetTool() == nil:
		k.broken("the call %q %s without a tool_call", id, what)
	case call.ToolCallId != nil && call.GetToolCallId() != id:
		k.broken("the call %q %s with the tool_call_id %q", id, what, call.GetToolCallId())
	}
}

func (k *checker) exec(m *agentv1.ExecServerMessage) {
	if k.execs[m.GetId()] {
		k.broken("the execution id %d was used before", m.GetId())
	}
	k.execs[m.GetId()] = true
	if id := toolCallID(m); id != "" && !k.started[id] {
		k.broken("the execution %d of the call %q, which has not started", m.GetId(), id)
	}
}

// end checks what can be told only when the stream is over. A connection that broke, or a client that
// left, excuses what is missing.
func (k *checker) end(a *Attempt, err error) {
	_, worded := errors.AsType[*cursorwire.Error](err)
	_, unsent := errors.AsType[*sendError](err)
	worded = worded && !unsent && !errors.Is(err, io.ErrUnexpectedEOF)
	clean := errors.Is(err, io.EOF)
	if clean || worded {
		for id := range k.open {
			if k.started[id] {
				k.broken("the call %q started and never completed", id)
			}
			delete(k.open, id)
		}
	}
	if clean && k.ended { // a call of a run that has not ended may be shown again
		k.c.mu.Lock()
		for id := range k.completed {
			k.c.over[id] = true
		}
		k.c.mu.Unlock()
	}
	if worded && k.ended {
		k.broken("an error after turn_ended")
	}
	if a.Checkpoints == 0 && clean {
		k.broken("no checkpoint in this attempt")
	}
}
