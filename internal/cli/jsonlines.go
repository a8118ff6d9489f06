package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// jsonLines shows a run as JSON lines. JSON has no control characters, so it is harmless on a
// terminal as it is.
type jsonLines struct{ out, aside *terminal }

type startedLine struct {
	SessionID string `json:"sessionId"`
	PromptID  string `json:"promptId"`
	Run       uint32 `json:"run"`
}

type resultLine struct {
	Outcome string          `json:"outcome"`
	Error   string          `json:"error,omitempty"`
	Text    string          `json:"text"`
	Usage   json.RawMessage `json:"usage,omitempty"`
}

func (j *jsonLines) started(sessionID, promptID string, run uint32) {
	j.line("started", startedLine{SessionID: sessionID, PromptID: promptID, Run: run})
}

func (j *jsonLines) frame(frame *roostv1.WatchResponse) {
	if reset := frame.GetReset_(); reset != nil {
		j.line("reset", message(reset))
	}
	for _, e := range frame.GetEvents().GetEvents() {
		j.line("event", message(e))
	}
}

func (*jsonLines) begin(*client.View)  {}
func (*jsonLines) update(*client.View) {}
func (j *jsonLines) say(line string)   { j.aside.printf("%s\n", line) }

func (j *jsonLines) result(v *client.View) {
	last := v.Session.GetLastRun()
	r := resultLine{Outcome: last.GetOutcome().String(), Error: last.GetError(), Text: lastText(v)}
	if v.Session.GetUsage() != nil {
		r.Usage = message(v.Session.Usage)
	}
	j.line("result", r)
}

// lastText returns what the model said last.
func lastText(v *client.View) string {
	for _, i := range slices.Backward(v.Items) {
		a := i.GetAssistant()
		if a == nil {
			continue
		}
		var text strings.Builder
		for _, b := range a.Blocks {
			text.WriteString(b.GetText().GetText())
		}
		return text.String()
	}
	return ""
}

// line writes an object with one member.
func (j *jsonLines) line(name string, value any) {
	raw, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		return // all values are made here, from strings and numbers
	}
	j.out.printf("%s\n", raw)
}

// message returns a message as compact JSON, always the same.
func message(m proto.Message) json.RawMessage {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return json.RawMessage("null")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return json.RawMessage("null")
	}
	return b.Bytes()
}
