package provider

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// ContinueNote is the user message that follows a cut answer when the model is to go on
// with it. Asking works with every provider; prefilling an answer does not.
const ContinueNote = "Your answer above was cut off by a broken connection. Go on exactly where it stops, in the middle of a word if need be. Do not repeat any of it and do not mention the interruption."

// Notes that stand in for a result that the transcript does not have.
const (
	noResult = "This call was interrupted and has no result. Whether it had any effect is unknown."
	notRun   = "This call was cut off before it was complete, so nothing was run. Make the call again if it is still needed."
)

// History returns the items a dialect encodes: paired, and when the request asks for the
// rest of a cut answer, with that answer reduced to its text and followed by ContinueNote.
// A cut answer without text is left out, so that the pass is simply made again. The
// request's items are not changed.
func History(req *Request) []session.Item {
	items := req.Items
	if !req.Continue || len(items) == 0 {
		return Pair(items)
	}
	last, ok := items[len(items)-1].(*session.Assistant)
	if !ok {
		return Pair(items)
	}
	paired := Pair(items[:len(items)-1])
	if text := textBlocks(last.Blocks); len(text) > 0 {
		partial := *last
		partial.Blocks = text
		paired = append(paired, &partial)
	}
	if n := len(paired); n == 0 || !isAnswer(paired[n-1]) {
		return paired
	}
	return append(paired, &session.User{Run: last.Run, Blocks: []session.Block{session.Text{Text: ContinueNote}}})
}

func isAnswer(it session.Item) bool {
	_, ok := it.(*session.Assistant)
	return ok
}

func textBlocks(blocks []session.Block) []session.Block {
	var text []session.Block
	for _, b := range blocks {
		if t, ok := b.(session.Text); ok && t.Text != "" {
			text = append(text, t)
		}
	}
	return text
}

// Pair returns items with every tool call followed at once by its one result, in the order
// of the calls, as all providers demand: they refuse a request with an orphan, and would
// refuse every later one of the session too. A call without a settled result gets an error
// result; a result without a call, and a second result, are dropped. Items that are paired
// already come back in the same order. items itself is not changed.
func Pair(items []session.Item) []session.Item {
	results := make(map[session.CallID]*session.Tool)
	for _, it := range items {
		t, ok := it.(*session.Tool)
		if !ok || t.Status == session.Streaming {
			continue
		}
		if _, twice := results[t.Call]; !twice {
			results[t.Call] = t
		}
	}
	paired := make([]session.Item, 0, len(items))
	for _, it := range items {
		switch it := it.(type) {
		case *session.User:
			paired = append(paired, it)
		case *session.Assistant:
			paired = append(paired, it)
			for _, call := range it.Calls() {
				paired = append(paired, resultOf(call, it.Run, results))
				delete(results, call.Call)
			}
		case *session.Tool: // placed behind its call, above
		}
	}
	return paired
}

func resultOf(call session.ToolCall, run session.RunID, results map[session.CallID]*session.Tool) *session.Tool {
	if t := results[call.Call]; t != nil {
		return t
	}
	why := noResult
	if !call.Complete {
		why = notRun
	}
	return &session.Tool{Run: run, Call: call.Call, Name: call.Name, Input: call.Input, Status: session.Failed, Output: why}
}

// maxMalformed bounds how much of a malformed input is shown to the model again, in bytes.
const maxMalformed = 2 << 10

// Input returns a tool call's input as a JSON object: the input itself when it is one, {}
// when it is blank, and otherwise an object that holds the malformed text, so that the
// model sees what it did wrong.
func Input(input string) json.RawMessage {
	trimmed := strings.TrimSpace(input)
	if trimmed == "" {
		return json.RawMessage("{}")
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	if len(trimmed) > maxMalformed {
		trimmed = trimmed[:maxMalformed]
	}
	wrapped, err := json.Marshal(struct {
		Malformed string `json:"malformed_input"`
	}{strings.ToValidUTF8(trimmed, "\uFFFD")})
	if err != nil { // a string always encodes
		return json.RawMessage("{}")
	}
	return wrapped
}

// ToolName returns name as providers accept it in a history: 1 to 64 characters of
// [a-zA-Z0-9_-]. A model may have made up any other.
func ToolName(name string) string {
	if name == "" {
		return "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), 64)]
}

// Schema returns a tool's schema as providers accept it: a JSON object whose type is
// "object". Anything that is not a JSON object becomes the schema of an empty one.
func Schema(schema json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(schema, &fields) != nil || fields == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if string(fields["type"]) == `"object"` {
		return schema
	}
	fields["type"] = json.RawMessage(`"object"`)
	fixed, err := json.Marshal(fields) // sorted by name: the same bytes always
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return fixed
}

// MissingImage is what the model reads in place of an image whose bytes are gone.
const MissingImage = "[an image that is no longer available]"

var errNoImages = errors.New("the request has no images")

// ImageBytes returns the bytes of an image in Items, or an error when there are none.
func (r *Request) ImageBytes(img session.Image) ([]byte, error) {
	if r.Image == nil {
		return nil, errNoImages
	}
	return r.Image(img)
}
