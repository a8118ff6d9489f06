package cursorview

import agentv1 "github.com/roost-dev/roost/proto/agent/v1"

// maxMerged bounds the text of a merged delta, in bytes.
const maxMerged = 16 << 10

// Merge joins text that follows text and thinking that follows thinking, up to 16 KiB in one
// message, and leaves everything else as it is. What it is given is not changed; what it returns may
// share messages with it.
func Merge(msgs []*agentv1.AgentServerMessage) []*agentv1.AgentServerMessage {
	var out []*agentv1.AgentServerMessage
	for i := 0; i < len(msgs); {
		text, n := run(msgs[i:])
		if n < 2 {
			out = append(out, msgs[i])
			i++
			continue
		}
		out = append(out, joined(msgs[i], text))
		i += n
	}
	return out
}

// run returns the text of the deltas at the beginning of msgs that can be one, and their number.
func run(msgs []*agentv1.AgentServerMessage) (text string, n int) {
	var joint []byte
	for _, m := range msgs {
		next, ok := deltaText(m)
		if !ok || n > 0 && (!sameKind(msgs[0], m) || len(joint)+len(next) > maxMerged) {
			break
		}
		joint = append(joint, next...)
		n++
	}
	return string(joint), n
}

func deltaText(m *agentv1.AgentServerMessage) (string, bool) {
	switch d := m.GetInteractionUpdate().GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		return d.TextDelta.GetText(), true
	case *agentv1.InteractionUpdate_ThinkingDelta:
		return d.ThinkingDelta.GetText(), true
	}
	return "", false
}

func sameKind(a, b *agentv1.AgentServerMessage) bool {
	x, y := a.GetInteractionUpdate(), b.GetInteractionUpdate()
	if s, t := x.GetTextDelta(), y.GetTextDelta(); s != nil || t != nil {
		return s != nil && t != nil && s.GetIsServerNotice() == t.GetIsServerNotice()
	}
	return x.GetThinkingDelta().GetThinkingStyle() == y.GetThinkingDelta().GetThinkingStyle()
}

func joined(first *agentv1.AgentServerMessage, text string) *agentv1.AgentServerMessage {
	u := first.GetInteractionUpdate()
	if d := u.GetTextDelta(); d != nil {
		return update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
			TextDelta: &agentv1.TextDeltaUpdate{Text: text, IsServerNotice: d.GetIsServerNotice()},
		}})
	}
	return update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingDelta{
		ThinkingDelta: &agentv1.ThinkingDeltaUpdate{Text: text, ThinkingStyle: u.GetThinkingDelta().ThinkingStyle},
	}})
}
