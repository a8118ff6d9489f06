package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
	"github.com/roost-dev/roost/internal/transcript"
)

func store(mime string, data []byte) (session.Image, error) {
	return session.Image{MIME: mime, Blob: "abc", Size: int64(len(data))}, nil
}

func readPi(t interface{ Fatal(...any) }, file string) *transcript.Imported {
	in, err := transcript.ReadPi(strings.NewReader(file), store)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func writePi(t interface{ Fatal(...any) }, s *session.State) string {
	var b bytes.Buffer
	if err := transcript.WritePi(&b, s, transcript.PiOptions{Load: load}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// shape prints items without what the file has no place for: runs, passes, ids, whether a
// message was a steer, and inputs that are not objects.
func shape(items []session.Item) string {
	calls := map[session.CallID]int{}
	input := func(s string) string {
		if !json.Valid([]byte(s)) {
			return "malformed"
		}
		if strings.HasPrefix(s, `{"malformed_input":`) {
			return "malformed"
		}
		return s
	}
	var out strings.Builder
	for _, it := range items {
		switch it := it.(type) {
		case *session.User:
			fmt.Fprintf(&out, "user %d %+v\n", it.At, it.Blocks)
		case *session.Assistant:
			stop := it.Stop
			if it.Status != session.Complete {
				stop = session.StopNone
			}
			fmt.Fprintf(&out, "assistant %d %v <%s> %v %v <%s>", it.At, it.Model, it.ResponseModel, it.Status, stop, it.Error)
			if it.Usage != nil {
				fmt.Fprintf(&out, " %+v", *it.Usage)
			}
			for _, b := range it.Blocks {
				if c, ok := b.(session.ToolCall); ok {
					calls[c.Call] = len(calls)
					if c.Input == "" {
						c.Input = "{}"
					}
					fmt.Fprintf(&out, " call %d %s %s", calls[c.Call], c.Name, input(c.Input))
					continue
				}
				fmt.Fprintf(&out, " %T%+v", b, b)
			}
			out.WriteByte('\n')
		case *session.Tool:
			fmt.Fprintf(&out, "tool %d %d %s %v <%s> %v %s\n", it.At, calls[it.Call], it.Name, it.Status, it.Output, it.Images, it.Details)
		}
	}
	return strings.ReplaceAll(out.String(), "\x00", "\uFFFD")
}

// What is written is read again, but for what the file has no place for; and after that,
// nothing changes any more.
func TestPiRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testkit.Fold(testkit.History(t))
		if s.Run != nil && (s.Run.Batch != nil || len(s.Run.Calls) > 0) {
			return // calls without results yet
		}
		first := readPi(t, writePi(t, s))
		if got, want := shape(first.Items), shape(s.Settled); got != want {
			t.Fatalf("read\n%s\nwritten\n%s", got, want)
		}
		if len(first.Lost) > 0 || first.Head.Model != s.Model || first.Head.Thinking != s.Thinking || first.Head.Cwd != s.Cwd || first.Head.ID != s.ID {
			t.Fatalf("lost %v, head %+v", first.Lost, first.Head)
		}
		read := &session.State{Head: first.Head, Settled: first.Items}
		if first.From != "" {
			read.Summary, read.Compacted = first.Summary, len(first.Items)
			read.Summarized = slices.IndexFunc(first.Items, func(it session.Item) bool { return it.ItemID() == first.From })
		}
		if kept := first.Summary != ""; kept != (s.Summary != "" && s.Summarized < s.Compacted) {
			t.Fatalf("summary %q, written %q of %d items", first.Summary, s.Summary, s.Summarized)
		}
		again := readPi(t, writePi(t, read))
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Fatalf("read the second time\n%s\nthe first time\n%s", b, a)
		}
	})
}

func TestPiSample(t *testing.T) {
	in := readPi(t, writePi(t, sample()))
	want := sample().Settled
	// The images that have no bytes, or are of a kind that is not taken, become text.
	u := in.Items[0].(*session.User)
	if len(u.Blocks) != 4 || u.Blocks[1] != session.Block(session.Image{MIME: "image/png", Blob: "abc", Size: int64(len(png))}) || in.Lost["image"] != 1 {
		t.Errorf("got %+v, lost %v", u.Blocks, in.Lost)
	}
	if got, want := shape(in.Items[4:]), shape(want[4:]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	a := in.Items[1].(*session.Assistant)
	if r := a.Blocks[0].(session.Reasoning); r.Signature != "SIG" || r.Text != "hm\nhm" || !a.Blocks[1].(session.Reasoning).Redacted {
		t.Errorf("thinking: %+v", a.Blocks)
	}
	if in.Items[5].ItemID() != "u2" || in.Items[5].(*session.User).Run != 2 || in.Head.Users != 2 || in.Head.LastRun != 2 || in.Head.Usage.Input != 10 || in.Head.Name != "A <b>name</b>" {
		t.Errorf("head %+v, %+v", in.Head, in.Items[5])
	}
}

const header = `{"type":"session","version":3,"id":"0197-a","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/p","parentSession":"/x"}` + "\n"

func said(id, parent, role, text string) string {
	p := `"` + parent + `"`
	if parent == "" {
		p = "null"
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":%q,"content":%q}}`+"\n", id, p, role, text)
}

func texts(in *transcript.Imported) string {
	var list []string
	for _, it := range in.Items {
		switch it := it.(type) {
		case *session.User:
			list = append(list, session.BlockText(it.Blocks[0]))
		case *session.Assistant:
			list = append(list, "="+session.BlockText(it.Blocks[0]))
		case *session.Tool:
			list = append(list, ">"+it.Output)
		}
	}
	return strings.Join(list, "|")
}

func TestPiTree(t *testing.T) {
	a, b, c, d := said("a", "", "user", "A"), said("b", "a", "assistant", "B"), said("c", "b", "user", "C"), said("d", "a", "assistant", "D")
	compaction := `{"type":"compaction","id":"k","parentId":"c","timestamp":"","summary":"SUM","firstKeptEntryId":"c","tokensBefore":9}` + "\n"
	for _, tc := range []struct{ name, file, want string }{
		{"line", a + b + c, "A|=B|C"},
		{"the last entry is the leaf", a + b + c + d, "A|=D"},
		{"gone back", a + b + c + d + `{"type":"leaf","id":"l","parentId":"d","targetId":"b"}`, "A|=B"},
		{"gone back to nothing", a + `{"type":"leaf","id":"l","parentId":"a","targetId":null}`, ""},
		{"a parent that is missing", c, "C"},
		{"a ring", said("x", "y", "user", "X") + said("y", "x", "user", "Y"), "X|Y"},
		{"a torn last line", a + b + `{"type":"mess`, "A|=B"},
		{"an id twice", a + said("a", "", "user", "other"), "A"},
		{"summary of a branch", a + `{"type":"branch_summary","id":"s","parentId":"a","summary":"S"}`, "A|Summary of another branch of this conversation:\n\nS"},
		{"compaction keeps all", a + b + c + compaction + said("e", "k", "assistant", "E"), "A|=B|C|=E"},
		{"others", `{"type":"label","id":"x","parentId":null}` + "\n" + `{"type":"custom_message","id":"y","parentId":"x","content":"M"}`, "M"},
	} {
		in := readPi(t, header+tc.file)
		if got := texts(in); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if compacted := strings.Contains(tc.name, "compaction"); compacted != (in.From == "u2" && in.Summary == "SUM") {
			t.Errorf("%s: summary %q, from %q", tc.name, in.Summary, in.From)
		}
	}
}

func TestPiCalls(t *testing.T) {
	msg := func(id, parent, m string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"x","message":%s}`+"\n", id, parent, m)
	}
	file := header + said("a", "", "user", "A") +
		msg("b", "a", `{"role":"assistant","provider":"p","model":"m","stopReason":"toolUse","content":[{"type":"toolCall","id":"x|1","name":"read","arguments":{ "path": "a" }},{"type":"toolCall","id":"x|2","name":"bash","arguments":{}},{"type":"toolCall","id":"x|3","name":"ls"}]}`) +
		msg("c", "b", `{"role":"toolResult","toolCallId":"x|2","toolName":"bash","content":[{"type":"text","text":"two"}],"isError":true,"details":{"z":1}}`) +
		msg("d", "c", `{"role":"toolResult","toolCallId":"x|1","toolName":"read","content":[{"type":"text","text":"one"},{"type":"text","text":"more"}]}`) +
		msg("e", "d", `{"role":"toolResult","toolCallId":"none","toolName":"read","content":[]}`) +
		msg("f", "e", `{"role":"user","content":[{"type":"text","text":"steer"},{"type":"video"}]}`)
	in := readPi(t, file)
	if got := texts(in); got != "A|={\"path\":\"a\"}|>one\nmore|>two|>The file has no result of this call.|steer" {
		t.Fatalf("got %q", got)
	}
	one, two := in.Items[2].(*session.Tool), in.Items[3].(*session.Tool)
	if one.ID != "t1-1-0" || one.Call != "call1-1-0" || one.Input != `{"path":"a"}` || two.Status != session.Failed || string(two.Details) != `{"z":1}` {
		t.Errorf("got %+v, %+v", one, two)
	}
	if u := in.Items[5].(*session.User); !u.Steer || u.Run != 1 || u.ID != "u2" {
		t.Errorf("got %+v", u)
	}
	for _, what := range []string{"result without a call", "call without a result", "block of an unknown kind"} {
		if in.Lost[what] != 1 {
			t.Errorf("%s: lost %v", what, in.Lost)
		}
	}
}

func TestPiRefusals(t *testing.T) {
	for _, c := range []struct {
		file string
		want error
	}{
		{"", transcript.ErrNotPi},
		{"x", transcript.ErrNotPi},
		{`{"type":"message"}`, transcript.ErrNotPi},
		{`[]`, transcript.ErrNotPi},
		{`{"type":"session","id":"a"}`, transcript.ErrVersion},
		{`{"type":"session","version":4}`, transcript.ErrVersion},
		{header + strings.Repeat("x", transcript.MaxImportLine+1), transcript.ErrTooBig},
	} {
		if _, err := transcript.ReadPi(strings.NewReader(c.file), nil); !errors.Is(err, c.want) {
			t.Errorf("%.40q: got %v, want %v", c.file, err, c.want)
		}
	}
}

func FuzzReadPi(f *testing.F) {
	f.Add([]byte(header))
	var b bytes.Buffer
	if err := transcript.WritePi(&b, sample(), transcript.PiOptions{Load: load}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(header + said("a", "", "user", "A") + said("b", "a", "bashExecution", "B") + `{"type":"compaction","id":"k","parentId":"b","summary":"s","firstKeptEntryId":"a"}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		in, err := transcript.ReadPi(bytes.NewReader(file), store)
		if err != nil {
			return
		}
		ids, waiting := map[session.ItemID]bool{}, []session.CallID{}
		for _, it := range in.Items {
			if ids[it.ItemID()] {
				t.Fatalf("two items are called %s", it.ItemID())
			}
			ids[it.ItemID()] = true
			if r, ok := it.(*session.Tool); ok {
				if len(waiting) == 0 || waiting[0] != r.Call || r.Details != nil && !json.Valid(r.Details) {
					t.Fatalf("result %+v, waiting for %v", r, waiting)
				}
				waiting = waiting[1:]
				continue
			}
			if len(waiting) > 0 {
				t.Fatalf("no result of %v", waiting)
			}
			if a, ok := it.(*session.Assistant); ok {
				for _, c := range a.Calls() {
					waiting = append(waiting, c.Call)
				}
			}
		}
		if in.From != "" && !ids[in.From] {
			t.Fatalf("kept from %s, which is no item", in.From)
		}
		s := &session.State{Head: in.Head, Settled: in.Items}
		if err := errors.Join(transcript.Markdown(&b, s), transcript.HTML(&b, s, load), transcript.JSONLines(&b, s)); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		writePi(t, s)
	})
}
