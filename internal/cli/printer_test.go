package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// screen is a terminal that shows both outputs in one buffer.
func screen(colour bool) (*printer, *bytes.Buffer) {
	var b bytes.Buffer
	t := &terminal{w: &b, tty: true, colour: colour}
	return &printer{out: t, aside: t, users: true}, &b
}

func say(text string) *roostv1.Block {
	return &roostv1.Block{Kind: &roostv1.Block_Text{Text: &roostv1.Text{Text: text}}}
}

func think(text string) *roostv1.Block {
	return &roostv1.Block{Kind: &roostv1.Block_Reasoning{Reasoning: &roostv1.Reasoning{Text: text}}}
}

func answer(status roostv1.Status, blocks ...*roostv1.Block) *roostv1.Item {
	return &roostv1.Item{Kind: &roostv1.Item_Assistant{Assistant: &roostv1.Assistant{Status: status, Blocks: blocks}}}
}

func toolItem(output string) *roostv1.Item {
	return &roostv1.Item{Kind: &roostv1.Item_Tool{Tool: &roostv1.Tool{
		Name: "bash", Input: "{\n \"command\": \"ls\"}", Status: roostv1.Status_STATUS_COMPLETE, Output: output,
	}}}
}

func TestTerminalGolden(t *testing.T) {
	p, b := screen(true)
	v := &client.View{Session: &roostv1.Session{Run: &roostv1.Run{Id: 1, Retry: &roostv1.Retry{Reason: "busy", ResumeAt: &timestamppb.Timestamp{}}}}}
	v.Items = []*roostv1.Item{
		answer(roostv1.Status_STATUS_COMPLETE, think("hm"), say("Hi \x1b]52;c;ZXZpbA==\x07\u202e.")),
		toolItem("1\n2\n3\n4\n5\n6\n7\n"),
		answer(roostv1.Status_STATUS_STREAMING, say("go")),
	}
	p.update(v)
	v.Session.Run = nil
	v.Session.LastRun = &roostv1.RunResult{Id: 1, Outcome: roostv1.Outcome_OUTCOME_FAILED, Error: "no \x1b[2J money"}
	p.update(v)
	got := []string{}
	for l := range strings.Lines(b.String()) {
		if strings.Contains(l, "retrying at") {
			l = "retrying\n" // the hour is local
		}
		got = append(got, l)
	}
	want := []string{
		"\x1b[2mhm\x1b[0m\n",
		"Hi ␛]52;c;ZXZpbA==␇\uFFFD.\n",
		"\x1b[36m● bash\x1b[0m { \"command\": \"ls\"}\n",
		"\x1b[2m  1\x1b[0m\n", "\x1b[2m  2\x1b[0m\n", "\x1b[2m  3\x1b[0m\n", "\x1b[2m  4\x1b[0m\n", "\x1b[2m  5\x1b[0m\n",
		"\x1b[2m  … 2 more lines\x1b[0m\n",
		"go\n",
		"retrying\n",
		"\x1b[31mthe run failed: no ␛[2J money\x1b[0m\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A transcript that grows in any steps is shown like one that was there at once.
func TestPrinterDoesNotCareAboutSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringMatching(`[a-z \n]{0,12}`)
		var items []*roostv1.Item
		for range rapid.IntRange(1, 5).Draw(t, "items") {
			if rapid.Bool().Draw(t, "tool") {
				items = append(items, toolItem(words.Draw(t, "output")))
			} else {
				items = append(items, answer(roostv1.Status_STATUS_COMPLETE, think(words.Draw(t, "thought")), say(words.Draw(t, "text"))))
			}
		}
		whole, want := screen(false)
		whole.update(&client.View{Session: &roostv1.Session{}, Items: items})
		steps, got := screen(false)
		for n := range items {
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				steps.update(&client.View{Session: &roostv1.Session{}, Items: append(items[:n:n], partly(t, items[n], steps))})
			}
			steps.update(&client.View{Session: &roostv1.Session{}, Items: items[:n+1]})
		}
		if want.String() != got.String() {
			t.Fatalf("at once:\n%s\nin steps:\n%s", want, got)
		}
	})
}

// partly returns an item in progress that shows no less than the printer has shown.
func partly(t *rapid.T, i *roostv1.Item, p *printer) *roostv1.Item {
	i = proto.CloneOf(i)
	if tool := i.GetTool(); tool != nil {
		tool.Status, tool.Output = roostv1.Status_STATUS_STREAMING, ""
		return i
	}
	a := i.GetAssistant()
	a.Status = roostv1.Status_STATUS_STREAMING
	for n, b := range a.Blocks {
		text, shown := client.BlockText(b), 0
		if n < len(p.shown) {
			shown = p.shown[n]
		}
		text = text[:rapid.IntRange(shown, len(text)).Draw(t, "shown")]
		if r := b.GetReasoning(); r != nil {
			whole := r.Text == text
			r.Text = text
			if !whole {
				a.Blocks = a.Blocks[:n+1]
				break
			}
			continue
		}
		b.GetText().Text = text
	}
	return i
}

func TestCleanIsHarmless(t *testing.T) {
	term := &terminal{tty: true}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, r := range term.text(s) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q becomes %q", s, term.text(s))
			}
		}
		if l := term.line(s, 20); len([]rune(l)) > 20 || strings.ContainsAny(l, "\n\t") {
			t.Fatalf("line of %q: %q", s, l)
		}
	})
	if got := term.text("a\x1b[31m\u009b2J\r\nb\x7f\ufffd"); got != "a␛[31m\uFFFD2J\nb␡\uFFFD" {
		t.Errorf("got %q", got)
	}
	if got := (&terminal{}).text("a\x1b"); got != "a\x1b" {
		t.Errorf("a pipe gets %q", got)
	}
}
