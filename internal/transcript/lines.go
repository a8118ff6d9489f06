package transcript

import (
	"encoding/json"
	"io"

	"github.com/roost-dev/roost/internal/session"
)

// The lines of JSONLines. Fields that are empty are left out, "type" and "id" excepted;
// times are milliseconds since 1970.
type (
	headLine struct {
		Type      string     `json:"type"` // "session"
		Version   int        `json:"version"`
		ID        session.ID `json:"id"`
		Name      string     `json:"name,omitempty"`
		Cwd       string     `json:"cwd,omitempty"`
		Model     string     `json:"model,omitempty"` // "provider/id"
		Thinking  string     `json:"thinking,omitempty"`
		Parent    session.ID `json:"parent,omitempty"`
		Origin    string     `json:"origin,omitempty"`
		CreatedAt int64      `json:"createdAt,omitempty"`
		UpdatedAt int64      `json:"updatedAt,omitempty"`
		Usage     *usageLine `json:"usage,omitempty"`
	}
	itemLine struct {
		Type    string          `json:"type"` // "user", "assistant" or "tool"
		ID      session.ItemID  `json:"id"`
		Run     session.RunID   `json:"run,omitempty"`
		At      int64           `json:"at,omitempty"`
		Prompt  string          `json:"prompt,omitempty"` // user: the client's id
		Note    session.Note    `json:"note,omitempty"`   // user: what it is about, when no person wrote it
		Steer   bool            `json:"steer,omitempty"`  // user
		Pass    int             `json:"pass,omitempty"`   // assistant
		Model   string          `json:"model,omitempty"`  // assistant
		Status  string          `json:"status,omitempty"` // assistant, tool: streaming, complete, failed, aborted
		Stop    string          `json:"stop,omitempty"`   // assistant: end, length, toolUse, refusal
		Error   string          `json:"error,omitempty"`
		Usage   *usageLine      `json:"usage,omitempty"`
		Blocks  []blockLine     `json:"blocks,omitempty"` // user, assistant; the images of a tool
		Call    session.CallID  `json:"call,omitempty"`   // tool
		Name    string          `json:"name,omitempty"`   // tool
		Input   string          `json:"input,omitempty"`  // tool: JSON text as the model wrote it
		Output  string          `json:"output,omitempty"` // tool
		Details json.RawMessage `json:"details,omitempty"`
	}
	blockLine struct {
		Type      string         `json:"type"` // "text", "reasoning", "image" or "call"
		Text      string         `json:"text,omitempty"`
		Signature string         `json:"signature,omitempty"` // reasoning
		Redacted  bool           `json:"redacted,omitempty"`  // reasoning
		MIME      string         `json:"mime,omitempty"`      // image
		Blob      string         `json:"blob,omitempty"`      // image: SHA-256 of its bytes
		Size      int64          `json:"size,omitempty"`      // image
		Call      session.CallID `json:"call,omitempty"`      // call
		Name      string         `json:"name,omitempty"`      // call
		Input     string         `json:"input,omitempty"`     // call: JSON text as the model wrote it
		Partial   bool           `json:"partial,omitempty"`   // call: Input was cut off
	}
)

// usageLine counts the tokens of one answer, or of a session, and what they cost in US
// dollars. Both formats of this package write it.
type usageLine struct {
	Input       int64    `json:"input"`
	Output      int64    `json:"output"`
	CacheRead   int64    `json:"cacheRead"`
	CacheWrite  int64    `json:"cacheWrite"`
	Reasoning   int64    `json:"reasoning,omitempty"`
	TotalTokens int64    `json:"totalTokens"`
	Cost        costLine `json:"cost"`
}

type costLine struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

// usageOf returns u as it is written, nil for nil.
func usageOf(u *session.Usage) *usageLine {
	if u == nil {
		return nil
	}
	return &usageLine{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning, TotalTokens: u.Total(),
		Cost: costLine{Input: u.Cost.Input, Output: u.Cost.Output, CacheRead: u.Cost.CacheRead, CacheWrite: u.Cost.CacheWrite, Total: u.Cost.Total()},
	}
}

// linesVersion is the version of the format of JSONLines. It grows when a field changes its
// meaning; new fields do not change it.
const linesVersion = 1

// JSONLines writes a session as JSON, a line each: first the session, then its items in
// order, those in progress last. Images are named by their hash.
func JSONLines(w io.Writer, s *session.State) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	head := headLine{
		Type: "session", Version: linesVersion, ID: s.ID, Name: s.Name, Cwd: s.Cwd, Model: modelName(s.Model), Thinking: string(s.Thinking),
		Parent: s.Parent, Origin: s.Origin, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.Usage != (session.Usage{}) {
		head.Usage = usageOf(&s.Usage)
	}
	if err := enc.Encode(head); err != nil {
		return err
	}
	for _, it := range s.Transcript() {
		if err := enc.Encode(lineOf(it)); err != nil {
			return err
		}
	}
	return nil
}

func modelName(m session.ModelRef) string {
	if m.IsZero() {
		return ""
	}
	return m.String()
}

func lineOf(it session.Item) itemLine {
	switch it := it.(type) {
	case *session.User:
		return itemLine{Type: "user", ID: it.ID, Run: it.Run, At: it.At, Prompt: it.Prompt, Note: it.Note, Steer: it.Steer, Blocks: blockLines(it.Blocks)}
	case *session.Assistant:
		return itemLine{
			Type: "assistant", ID: it.ID, Run: it.Run, At: it.At, Pass: it.Pass, Model: modelName(it.Model), Status: statusName(it.Status),
			Stop: stopName(it.Stop), Error: it.Error, Usage: usageOf(it.Usage), Blocks: blockLines(it.Blocks),
		}
	case *session.Tool:
		l := itemLine{
			Type: "tool", ID: it.ID, Run: it.Run, At: it.At, Call: it.Call, Name: it.Name, Input: it.Input, Status: statusName(it.Status),
			Output: it.Output, Details: it.Details,
		}
		for _, img := range it.Images {
			l.Blocks = append(l.Blocks, blockLines([]session.Block{img})...)
		}
		return l
	}
	return itemLine{}
}

func blockLines(blocks []session.Block) []blockLine {
	var lines []blockLine
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			lines = append(lines, blockLine{Type: "text", Text: b.Text})
		case session.Reasoning:
			lines = append(lines, blockLine{Type: "reasoning", Text: b.Text, Signature: b.Signature, Redacted: b.Redacted})
		case session.Image:
			lines = append(lines, blockLine{Type: "image", MIME: b.MIME, Blob: b.Blob, Size: b.Size})
		case session.ToolCall:
			lines = append(lines, blockLine{Type: "call", Call: b.Call, Name: b.Name, Input: b.Input, Partial: !b.Complete})
		}
	}
	return lines
}

func stopName(s session.StopReason) string {
	switch s {
	case session.StopEnd:
		return "end"
	case session.StopLength:
		return "length"
	case session.StopToolUse:
		return "toolUse"
	case session.StopRefusal:
		return "refusal"
	case session.StopNone:
	}
	return ""
}
