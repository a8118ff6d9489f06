package piwire

// Item is an entry of a transcript (section 2.4): [*UserItem], [*AssistantItem],
// [*ToolItem], or [*RawItem], which stands for one of them.
type Item interface{ item() }

// UserItem is a message of the user. Content holds [*Text] and [*Image].
type UserItem struct {
	ID        string // not empty
	Content   []Block
	Timestamp int64 // milliseconds since 1970
}

// AssistantItem is an answer of a model. Content holds [*Text], [*Thinking] and
// [*ToolCall]. Status decides what else is there:
//
//	streaming  no StopReason, no ErrorMessage
//	complete   StopReason stop, length or toolUse, no ErrorMessage
//	error      StopReason error, ErrorMessage absent or not empty
//	aborted    StopReason aborted, any ErrorMessage
type AssistantItem struct {
	ID            string // not empty
	Content       []Block
	Model         ModelRef
	ResponseModel string // optional, "" is absent
	Usage         *Usage // optional
	Timestamp     int64  // milliseconds since 1970
	Status        AssistantStatus
	StopReason    StopReason
	ErrorMessage  *string // optional
}

// ToolItem is a tool's run. Content holds [*Text] and [*Image]. The wire's
// isError follows from Status.
type ToolItem struct {
	ID         string // not empty
	ToolCallID string // not empty
	ToolName   string // not empty
	Input      Value
	Content    []Block
	Details    Value  // optional
	Usage      *Usage // optional
	Timestamp  int64  // milliseconds since 1970
	Status     ToolStatus
}

func (*UserItem) item()      {}
func (*AssistantItem) item() {}
func (*ToolItem) item()      {}
func (*RawItem) item()       {}

// Block is a piece of content (section 2.3): [*Text], [*Thinking], [*Image],
// [*ToolCall].
type Block interface{ block() }

// Text is text, possibly empty.
type Text struct{ Text string }

// Thinking is what a model thought. Redacted is optional.
type Thinking struct {
	Thinking string
	Redacted *bool
}

// Image is a picture. Data is base64 by convention; MimeType is not empty.
type Image struct{ Data, MimeType string }

// ToolCall is a model's wish to run a tool. While it streams, Input is the JSON
// text so far, as a [TextValue].
type ToolCall struct {
	ToolCallID string // not empty
	ToolName   string // not empty
	Input      Value
}

func (*Text) block()     {}
func (*Thinking) block() {}
func (*Image) block()    {}
func (*ToolCall) block() {}

// RawItem is an item that has been encoded before, for transcripts that are sent
// again and again. It is made by [EncodeItem], immutable, and may be shared by
// goroutines. Decoding never returns one.
type RawItem struct {
	enc    string
	height int // levels below the item
	user   bool
	ended  bool // a terminal assistant or tool item
}

// EncodeItem checks and encodes an item once, to be put into any number of
// messages. A [*RawItem] is returned as it is.
func EncodeItem(it Item) (*RawItem, error) {
	if raw, ok := it.(*RawItem); ok {
		return raw, nil
	}
	var e encoder
	raw := &RawItem{user: isUser(it), ended: hasEnded(it), height: heightOf(it)}
	e.item(it, 0)
	enc, err := e.finish(FromServer, 0)
	if err != nil {
		return nil, err
	}
	raw.enc = string(enc)
	return raw, nil
}

// Size returns the number of bytes of the item in a message.
func (r *RawItem) Size() int { return len(r.enc) }

func isUser(it Item) bool {
	switch it := it.(type) {
	case *UserItem:
		return true
	case *RawItem:
		return it.user
	default:
		return false
	}
}

// hasEnded reports whether it is an assistant or tool item in a settled state.
func hasEnded(it Item) bool {
	switch it := it.(type) {
	case *AssistantItem:
		return it.Status != AssistantStreaming
	case *ToolItem:
		return it.Status != ToolRunning
	case *RawItem:
		return it.ended
	default:
		return false
	}
}

// heightOf returns the number of levels below an item: its blocks' fields, or its
// free values if they are deeper.
func heightOf(it Item) int {
	height := 3 // item, content, block, field
	switch it := it.(type) {
	case *AssistantItem:
		for _, b := range it.Content {
			if call, ok := b.(*ToolCall); ok {
				height = max(height, 3+int(call.Input.height))
			}
		}
	case *ToolItem:
		height = max(height, 1+int(it.Input.height), 1+int(it.Details.height))
	}
	return height
}
