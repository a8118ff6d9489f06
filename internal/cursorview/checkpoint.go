package cursorview

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Base is what a checkpoint is built on beside the session.
type Base struct {
	// State is what the client sent; it may be nil. What a session knows nothing of is kept as it is,
	// unknown fields included.
	State *agentv1.ConversationStateStructure
	// Prefix are the client's own entries for the first turns, which are used as they are.
	Prefix [][]byte
	// Items is the length of the transcript that Prefix stands for (Plan.Items). When the last turn of
	// Prefix is the last of all and there is more in it by now, it is shown anew. 0 means that nothing
	// was added to it.
	Items int
	// Window is the model's context window in tokens; 0 when unknown.
	Window int
	// Mode is the mode the client asked for; unspecified for that of State.
	Mode agentv1.AgentMode
	// Todos is the list when HasTodos is set; else that of State stays.
	Todos    []*agentv1.TodoItem
	HasTodos bool
	// Plan is a plan that was accepted in place of that of State; nil when there is none.
	Plan *cursortool.Plan
	// NowMS is when the conversation began if the session does not know; milliseconds since 1970.
	NowMS int64
}

// Checkpoint is a conversation's state as a client keeps it.
type Checkpoint struct {
	State *agentv1.ConversationStateStructure
	// Blobs are what State refers to, those of Prefix left out: first what a turn refers to, then the
	// turn. A blob may come more than once.
	Blobs []Blob
	// Images are pictures that messages in Blobs refer to. Their bytes are in the server's blob store
	// under the same hash.
	Images []cursorwire.BlobID
}

// Checkpoint returns the state of s for a client (section 6.1). The slices' contents are shared with
// the projector and must not be changed.
func (p *Projector) Checkpoint(s *session.State, in Base) Checkpoint {
	starts := turnStarts(s.Settled)
	p.forget(s.Settled, starts)
	mode := in.mode(s)
	out := Checkpoint{State: in.patched(s, mode)}
	out.State.Turns = make([][]byte, 0, len(starts))
	prefix := in.Prefix[:min(len(in.Prefix), len(starts))]
	more := s.Unsettled()
	if n := len(prefix); n > 0 && n == len(starts) && in.Items > 0 && len(s.Settled)+len(more) > in.Items {
		prefix = prefix[:n-1]
	}
	out.State.Turns = append(out.State.Turns, prefix...)
	for i := len(prefix); i < len(starts); i++ {
		var open []session.Item
		if i == len(starts)-1 {
			open = more
		}
		t, blob := p.turn(turnItems(s.Settled, starts, i), open, mode)
		out.Blobs = append(out.Blobs, t.user)
		out.Blobs = append(out.Blobs, t.steps...)
		out.Blobs = append(out.Blobs, blob)
		out.Images = append(out.Images, t.images...)
		out.State.Turns = append(out.State.Turns, blob.ID.Bytes())
	}
	return out
}

func (in *Base) mode(s *session.State) agentv1.AgentMode {
	client := in.Mode
	if client == agentv1.AgentMode_AGENT_MODE_UNSPECIFIED {
		client = in.State.GetMode()
	}
	return WireMode(s.Mode, client)
}

// patched returns the client's state with all that the session knows better, but for the turns.
func (in *Base) patched(s *session.State, mode agentv1.AgentMode) *agentv1.ConversationStateStructure {
	state := cloneWithoutTurns(in.State)
	state.Mode = &mode
	state.PendingToolCalls = pendingCalls(s)
	in.patchTokens(state, s)
	patchSummary(state, s)
	if in.HasTodos {
		state.Todos = nil
		for _, t := range in.Todos {
			state.Todos = append(state.Todos, mustEncode(t).Data)
		}
	}
	in.patchPlan(state)
	if state.ConversationStartedTimestampMs == nil {
		if at := max(s.CreatedAt, 0); at > 0 {
			state.ConversationStartedTimestampMs = new(uint64(at))
		} else if in.NowMS > 0 {
			state.ConversationStartedTimestampMs = new(uint64(in.NowMS))
		}
	}
	return state
}

// cloneWithoutTurns copies a state, but not its turns, which may be many and are made anew.
func cloneWithoutTurns(base *agentv1.ConversationStateStructure) *agentv1.ConversationStateStructure {
	out := &agentv1.ConversationStateStructure{}
	if base == nil {
		return out
	}
	from, to := base.ProtoReflect(), out.ProtoReflect()
	turns := from.Descriptor().Fields().ByName("turns")
	shallow := from.New()
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Number() != turns.Number() {
			shallow.Set(f, v)
		}
		return true
	})
	proto.Merge(to.Interface(), shallow.Interface())
	to.SetUnknown(append(protoreflect.RawFields(nil), from.GetUnknown()...))
	return out
}

func (in *Base) patchPlan(state *agentv1.ConversationStateStructure) {
	if in.Plan == nil {
		return
	}
	state.Plan = mustEncode(&agentv1.ConversationPlan{Plan: in.Plan.Text}).Data
	id := in.Plan.ID
	if id == "" {
		id = in.Plan.Name
	}
	if id == "" {
		return
	}
	if state.Plans == nil {
		state.Plans = map[string]*agentv1.PlanRegistryEntry{}
	}
	state.Plans[id] = &agentv1.PlanRegistryEntry{Id: id, Path: strings.TrimPrefix(in.Plan.URI, "file://")}
}
