package transcript

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// Store keeps the bytes of an image and returns what an item holds of it. The type is one
// of PNG, JPEG, GIF and WebP by its name; the bytes are not checked.
type Store func(mime string, data []byte) (session.Image, error)

// Imported is a session as a file tells it.
type Imported struct {
	// Head has the file's id (empty when roost cannot use it), directory, name, model,
	// thinking level and times, and the counters of the items.
	Head  session.Head
	Items []session.Item
	// Summary stands for the items before the one called From, when the file was compacted
	// and they are no longer told to the model. Both are empty otherwise.
	Summary string
	From    session.ItemID
	// Lost counts what could not be taken over, by what it is.
	Lost map[string]int
}

// ReadPi reads pi's session file, version 3: the branch that the session was on. Items get
// new ids, as roost would have given them: a message after an answer without calls begins a
// run, one behind tool results is a steer. Every call has one result behind it, in the order
// of the calls; one that the file lacks is an error result. With a nil store, or when it
// fails, images become text. Errors are ErrNotPi, ErrVersion, ErrTooBig and the reader's.
func ReadPi(r io.Reader, store Store) (*Imported, error) {
	f, err := readTree(r)
	if err != nil {
		return nil, err
	}
	b := &importer{store: store, out: &Imported{Lost: map[string]int{}}}
	h := &b.out.Head
	if id := session.ID(f.header.ID); id.Valid() {
		h.ID = id
	}
	h.Cwd, h.Origin, h.CreatedAt = clean(f.header.Cwd), "pi", millis(f.header.Timestamp)
	h.UpdatedAt = h.CreatedAt
	b.lose("unreadable line", f.bad)
	path := f.path()
	first := make(map[string]int, len(path)) // of each entry, the index of the item that follows
	for _, e := range path {
		b.entry(e, first)
		h.UpdatedAt = max(h.UpdatedAt, millis(e.Timestamp))
	}
	b.flush()
	if b.out.Summary != "" {
		i, ok := first[b.kept]
		if ok && i < len(b.out.Items) {
			b.out.From = b.out.Items[i].ItemID()
		} else {
			b.out.Summary = ""
			b.lose("compaction", 1)
		}
	}
	h.LastRun, h.Users = b.run, b.users
	return b.out, nil
}

// millis reads a time; one that makes no sense is 0.
func millis(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

// clean drops what no text may hold.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// importer turns messages into items.
type importer struct {
	store Store
	out   *Imported
	kept  string // the id of the first entry that the newest compaction kept

	run   session.RunID
	pass  int
	users uint32
	open  bool                             // the run goes on: its last answer had calls
	ids   map[string]session.CallID        // pi's ids of the calls that wait for results
	calls []session.ToolCall               // of the last answer, until their results are flushed
	done  map[session.CallID]*session.Tool // results for calls
}

func (b *importer) lose(what string, n int) {
	if n > 0 {
		b.out.Lost[what] += n
	}
}

func (b *importer) entry(e piEntry, first map[string]int) {
	at := millis(e.Timestamp)
	var m piMessage
	if e.Type == "message" && json.Unmarshal(e.Message, &m) != nil {
		b.lose("unreadable message", 1)
		return
	}
	if m.Role != "toolResult" {
		b.flush()
	}
	first[e.ID] = len(b.out.Items)
	switch e.Type {
	case "message":
		b.message(m, at)
	case "custom_message":
		b.user(b.content(e.Content), at)
	case "branch_summary":
		b.user([]session.Block{session.Text{Text: "Summary of another branch of this conversation:\n\n" + clean(e.Summary)}}, at)
	case "compaction":
		b.kept, b.out.Summary = e.FirstKept, clean(e.Summary)
	case "model_change":
		b.out.Head.Model = session.ModelRef{Provider: clean(e.Provider), ID: clean(e.ModelID)}
	case "thinking_level_change":
		if t := session.Thinking(e.ThinkingLevel); t.Valid() {
			b.out.Head.Thinking = t
		}
	case "session_info":
		b.out.Head.Name = clean(e.Name)
	case "leaf", "usage":
	default:
		b.lose("other entry", 1)
	}
}

func (b *importer) message(m piMessage, at int64) {
	if m.Timestamp > 0 {
		at = m.Timestamp
	}
	switch m.Role {
	case "user", "custom":
		b.user(b.content(m.Content), at)
	case "assistant":
		b.assistant(m, at)
	case "toolResult":
		b.result(m, at)
	case "bashExecution":
		if m.Exclude {
			b.lose("command that the model was not told", 1)
			return
		}
		b.user([]session.Block{session.Text{Text: "The user ran a command:\n\n" + fenced("", clean(m.Command)) + "\nIts output:\n\n" + fenced("", clean(m.Output))}}, at)
	default:
		b.lose("message of an unknown kind", 1)
	}
}

// content reads the blocks of a message, or its text.
func (b *importer) content(raw json.RawMessage) []session.Block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []session.Block{session.Text{Text: clean(text)}}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		b.lose("unreadable content", 1)
		return nil
	}
	var blocks []session.Block
	for _, r := range list {
		var pb piBlock
		if json.Unmarshal(r, &pb) != nil {
			b.lose("unreadable block", 1)
		} else if block := b.block(pb); block != nil {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func (b *importer) block(p piBlock) session.Block {
	switch {
	case p.Type == "text" && p.Text != nil:
		return session.Text{Text: clean(*p.Text)}
	case p.Type == "thinking" && p.Thinking != nil:
		return session.Reasoning{Text: clean(*p.Thinking), Signature: p.ThinkingSignature, Redacted: p.Redacted}
	case p.Type == "toolCall" && p.Name != "":
		return session.ToolCall{Call: session.CallID(p.ID), Name: clean(p.Name), Input: input(p.Arguments), Complete: true}
	case p.Type == "image":
		if b.store != nil && isPicture(p.MIMEType) && len(p.Data) > 0 {
			if img, err := b.store(p.MIMEType, p.Data); err == nil {
				return img
			}
		}
		b.lose("image", 1)
		return session.Text{Text: "[an image that is not part of this session any more]"}
	}
	b.lose("block of an unknown kind", 1)
	return nil
}

// input returns a call's arguments as JSON text without spaces.
func input(raw json.RawMessage) string {
	var out bytes.Buffer
	if len(raw) == 0 || json.Compact(&out, raw) != nil {
		return "{}"
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD")
}
