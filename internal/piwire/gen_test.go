package piwire

import (
	"encoding/json"

	"pgregory.net/rapid"
)

// Generators of valid messages. A nil list and an empty one are the same on the
// wire, so empty lists are drawn as nil.

func oneIn[T any](t *rapid.T, list []T) T { return rapid.SampledFrom(list).Draw(t, "choice") }

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00", "\ufeff", "\u2028", "\U0010ffff", "\uffff"})).Draw(t, "text")
}

func drawFull(t *rapid.T) string {
	return oneIn(t, []string{"a", "id-1", "請", "\x00", "a/b c"}) + drawText(t)
}

func drawBool(t *rapid.T) bool { return rapid.Bool().Draw(t, "bool") }

func drawCount(t *rapid.T) int64 { return rapid.Int64Range(0, MaxCount).Draw(t, "count") }

func drawMoney(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Float64Range(0, MaxCount-1), rapid.SampledFrom([]float64{0, 1, 3, 0.5, 1e-300, 5e-324})).Draw(t, "money")
}

func maybe[T any](t *rapid.T, draw func(*rapid.T) T) *T {
	if !drawBool(t) {
		return nil
	}
	v := draw(t)
	return &v
}

func maybeFull(t *rapid.T) string {
	if !drawBool(t) {
		return ""
	}
	return drawFull(t)
}

func drawList[T any](t *rapid.T, most int, draw func(*rapid.T) T) (all []T) {
	for range rapid.IntRange(0, most).Draw(t, "length") {
		all = append(all, draw(t))
	}
	return all
}

func drawJSON(t *rapid.T, depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return drawBool(t)
	case 2:
		return float64(rapid.Int64Range(-MaxCount, MaxCount).Draw(t, "integer"))
	case 3:
		return oneIn(t, []float64{0.5, -1.5, 1e-300, 5e-324, 0.1, 1234.5678, -1e-7})
	case 4:
		return drawText(t)
	case 5:
		return append([]any{}, drawList(t, 4, func(t *rapid.T) any { return drawJSON(t, depth-1) })...)
	default:
		m := map[string]any{}
		for range rapid.IntRange(0, 20).Draw(t, "entries") {
			m[drawText(t)] = drawJSON(t, depth-1)
		}
		return m
	}
}

func drawValue(t *rapid.T) Value {
	text, err := json.Marshal(drawJSON(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	v, err := ValueFromJSON(text, ToolCallLevels)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func maybeValue(t *rapid.T) Value {
	if v := maybe(t, drawValue); v != nil {
		return *v
	}
	return Value{}
}

func drawModelRef(t *rapid.T) ModelRef { return ModelRef{drawFull(t), drawFull(t)} }

func drawTextBlock(t *rapid.T) Block { return &Text{drawText(t)} }

func drawPlainBlock(t *rapid.T) Block {
	if drawBool(t) {
		return &Image{drawText(t), drawFull(t)}
	}
	return drawTextBlock(t)
}

func drawAssistantBlock(t *rapid.T) Block {
	switch rapid.IntRange(0, 2).Draw(t, "block") {
	case 0:
		return &Thinking{drawText(t), maybe(t, drawBool)}
	case 1:
		return &ToolCall{drawFull(t), drawFull(t), drawValue(t)}
	default:
		return drawTextBlock(t)
	}
}

func drawUsage(t *rapid.T) Usage {
	return Usage{
		drawCount(t), drawCount(t), drawCount(t), drawCount(t), maybe(t, drawCount), drawCount(t),
		UsageCost{drawMoney(t), drawMoney(t), drawMoney(t), drawMoney(t), drawMoney(t)},
	}
}

func drawUser(t *rapid.T) Item {
	return &UserItem{drawFull(t), drawList(t, 3, drawPlainBlock), drawCount(t)}
}

func drawAssistant(t *rapid.T) Item {
	a := &AssistantItem{
		ID: drawFull(t), Content: drawList(t, 3, drawAssistantBlock), Model: drawModelRef(t), ResponseModel: maybeFull(t),
		Usage: maybe(t, drawUsage), Timestamp: drawCount(t), Status: oneIn(t, assistantStatuses),
	}
	switch a.Status {
	case AssistantComplete:
		a.StopReason = oneIn(t, []StopReason{StopStop, StopLength, StopToolUse})
	case AssistantError:
		a.StopReason, a.ErrorMessage = StopError, maybe(t, drawFull)
	case AssistantAborted:
		a.StopReason, a.ErrorMessage = StopAborted, maybe(t, drawText)
	case AssistantStreaming:
	}
	return a
}

func drawTool(t *rapid.T) Item {
	return &ToolItem{
		drawFull(t), drawFull(t), drawFull(t), drawValue(t), drawList(t, 3, drawPlainBlock), maybeValue(t),
		maybe(t, drawUsage), drawCount(t), oneIn(t, toolStatuses),
	}
}

func drawItem(t *rapid.T) Item {
	return oneIn(t, []func(*rapid.T) Item{drawUser, drawAssistant, drawTool})(t)
}

func drawMetadata(t *rapid.T) SessionMetadata {
	return SessionMetadata{drawFull(t), drawCount(t), maybe(t, drawCount), maybeFull(t), maybe(t, drawText), maybeFull(t)}
}

func drawModel(t *rapid.T) ModelMetadata {
	return ModelMetadata{
		drawFull(t), drawFull(t), drawFull(t), drawFull(t), drawBool(t),
		drawList(t, 3, func(t *rapid.T) InputKind { return oneIn(t, inputKinds) }),
		max(1, drawCount(t)), max(1, drawCount(t)),
		ModelCost{drawMoney(t), drawMoney(t), drawMoney(t), drawMoney(t)},
		append(drawList(t, 3, drawLevel), ThinkingOff), drawBool(t),
	}
}

func drawLevel(t *rapid.T) ThinkingLevel { return oneIn(t, thinkingLevels) }

func drawServerSnapshot(t *rapid.T) *ServerSnapshot {
	return &ServerSnapshot{drawFull(t), drawCount(t), drawList(t, 3, drawMetadata), drawList(t, 2, drawModel)}
}

func drawSessionSnapshot(t *rapid.T) *SessionSnapshot {
	return &SessionSnapshot{
		drawFull(t), maybe(t, drawText), drawFull(t), drawCount(t), drawCount(t), oneIn(t, phases), drawModelRef(t),
		drawLevel(t), drawBool(t), drawBool(t), drawCount(t),
		drawList(t, 4, drawItem), drawList(t, 2, drawUser), drawCount(t),
	}
}

func drawError(t *rapid.T) ProtocolError {
	return ProtocolError{oneIn(t, errorCodes), drawText(t), maybeValue(t)}
}

func drawResult(t *rapid.T) Result {
	switch rapid.IntRange(0, 3).Draw(t, "result") {
	case 0:
		return &ListResult{drawList(t, 3, drawMetadata)}
	case 1:
		return &DetachResult{drawFull(t)}
	default:
		return &SessionResult{oneIn(t, snapshotCommands), drawSessionSnapshot(t)}
	}
}

func drawProgress(t *rapid.T) Progress {
	it := drawItem(t)
	switch {
	case hasEnded(it) && drawBool(t):
		return &ItemFinished{it}
	case !isUser(it) && drawBool(t):
		return &ItemUpdated{it}
	case drawBool(t):
		return &ItemStarted{it}
	default:
		return &AssistantDelta{drawFull(t), drawCount(t), oneIn(t, deltaKinds), drawText(t)}
	}
}

func drawServerMessage(t *rapid.T) ServerMessage {
	switch rapid.IntRange(0, 7).Draw(t, "message") {
	case 0:
		return &ServerHello{drawFull(t), drawServerSnapshot(t)}
	case 1:
		return &HelloError{drawError(t)}
	case 2:
		e := drawError(t)
		return &Response{ID: drawFull(t), Error: &e}
	case 3:
		return &Response{ID: drawFull(t), Result: drawResult(t)}
	case 4:
		return &ServerSnapshotEvent{drawServerSnapshot(t)}
	case 5:
		return &SessionSnapshotEvent{drawSessionSnapshot(t)}
	case 6:
		return &SessionRemovedEvent{drawFull(t)}
	default:
		return &SessionProgressEvent{drawFull(t), drawProgress(t)}
	}
}

func drawCommand(t *rapid.T) Command {
	id := drawFull(t)
	switch rapid.IntRange(0, 8).Draw(t, "command") {
	case 0:
		return &List{}
	case 1:
		c := &Create{Cwd: maybeFull(t), Name: maybe(t, drawText), Model: maybe(t, drawModelRef)}
		if level := maybe(t, drawLevel); level != nil {
			c.ThinkingLevel = *level
		}
		return c
	case 2:
		return &Attach{id}
	case 3:
		return &Detach{id}
	case 4:
		return &Prompt{id, drawText(t)}
	case 5:
		return &Steer{id, drawText(t)}
	case 6:
		return &Abort{id}
	case 7:
		return &SetModel{id, drawModelRef(t)}
	default:
		return &SetThinking{id, drawLevel(t)}
	}
}

func drawClientMessage(t *rapid.T) ClientMessage {
	if rapid.IntRange(0, 9).Draw(t, "hello") == 0 {
		return &Hello{drawCount(t)}
	}
	return &Request{drawFull(t), drawCommand(t)}
}
