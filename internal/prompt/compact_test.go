package prompt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
)

func TestEstimate(t *testing.T) {
	code := "func (s *State) Tool(call CallID) *Tool {\n\tif s.Run != nil {\n\t\tfor _, t := range s.Run.Batch {\n\t\t\tif t.Call == call {\n\t\t\t\treturn t\n\t\t\t}\n\t\t}\n\t}\n\treturn nil\n}\n"
	for _, c := range []struct {
		name, text string
		low, high  int // what tokenizers of today's models say lies in between
	}{
		{"English", strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 100), 1300, 1700},
		{"Chinese", strings.Repeat("这个函数返回错误的结果。", 100), 700, 1300},
		{"Japanese", strings.Repeat("この関数は間違った結果を返します。", 100), 1000, 1800},
		{"Korean", strings.Repeat("이 함수는 잘못된 결과를 반환합니다. ", 100), 1000, 1900},
		{"Russian", strings.Repeat("Эта функция возвращает неверный результат. ", 100), 900, 2200},
		{"code", strings.Repeat(code, 10), 600, 1100},
		{"JSON", strings.Repeat(`{"path":"internal/a.go","limit":20},`, 100), 1000, 2000},
		{"base64", strings.Repeat("aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0", 100), 1400, 3600},
		{"blanks", strings.Repeat(" ", 1600), 10, 200},
		{"emoji", strings.Repeat("🙂", 100), 100, 400},
		{"nothing", "", 0, 0},
	} {
		if n := prompt.Estimate(nil, c.text, nil); n < c.low || n > c.high {
			t.Errorf("%s: %d tokens, want %d to %d", c.name, n, c.low, c.high)
		}
	}
	img := session.Image{MIME: "image/png"}
	if n := prompt.Estimate([]session.Item{&session.User{Blocks: []session.Block{img}}, &session.Tool{Images: []session.Image{img}}}, "", offered); n < 3200 || n > 3400 {
		t.Errorf("images and a tool: %d tokens", n)
	}
}

func TestUsed(t *testing.T) {
	said := func(id string, n int64) *session.Assistant {
		return &session.Assistant{ID: session.ItemID(id), Status: session.Complete, Usage: &session.Usage{Input: n, CacheRead: 10}}
	}
	items := []session.Item{user("u1", "a"), said("a1-1", 1000), user("u2", "hello")}
	tail := prompt.Estimate(items[2:], "", nil)
	all := prompt.Estimate(items, "system", nil)
	for _, c := range []struct {
		after session.ItemID
		want  int
	}{{"", 1010 + tail}, {"u1", 1010 + tail}, {"a1-1", all}, {"u2", all}} {
		if got := prompt.Used(items, c.after, "system", nil); got != c.want {
			t.Errorf("after %q: %d, want %d", c.after, got, c.want)
		}
	}
}

// conversation draws a settled transcript.
func conversation(t *rapid.T) []session.Item { return testkit.Fold(testkit.History(t)).Settled }

// A cut never parts a call from its result, and what is sent keeps the newest message of
// the user word for word.
func TestCutAndSend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := conversation(t)
		keep := rapid.IntRange(0, 400).Draw(t, "keep")
		at := prompt.Cut(items, keep)
		if at < 0 || at >= max(len(items), 1) {
			t.Fatalf("cut at %d of %d", at, len(items))
		}
		if at == 0 {
			return
		}
		made := map[session.CallID]bool{}
		for _, it := range items[:at] {
			if a, ok := it.(*session.Assistant); ok {
				for _, c := range a.Calls() {
					made[c.Call] = true
				}
			}
		}
		for _, it := range items[at:] {
			if r, ok := it.(*session.Tool); ok && made[r.Call] {
				t.Fatalf("the result of %s was parted from its call", r.Call)
			}
		}
		s := running(items...)
		s.Summary, s.Summarized = "THE SUMMARY", at
		sent := prompt.Request(s, seeing(), nil).Items
		if !slices.ContainsFunc(sent, func(i session.Item) bool { return strings.Contains(textOf(i), "THE SUMMARY") }) {
			t.Fatalf("no summary in %v", sent)
		}
		isUser := func(it session.Item) bool { u, ok := it.(*session.User); return ok && u.Note == session.NoteNone }
		if i := len(items) - 1 - slices.IndexFunc(reversed(items), isUser); !slices.Contains(sent, items[i]) {
			t.Fatal("the newest message of the user is not sent")
		}
		if !slices.Equal(sent[len(sent)-len(items[at:]):], items[at:]) {
			t.Fatal("what was kept is not sent as it was")
		}
	})
}

func reversed(items []session.Item) []session.Item {
	r := slices.Clone(items)
	slices.Reverse(r)
	return r
}

// One long run, as of an agent that works for hours, can be cut as well.
func TestCutInsideARun(t *testing.T) {
	items := []session.Item{user("u1", "do it")}
	for i := range 50 {
		call := session.CallID(fmt.Sprintf("call1-%d-0", i))
		items = append(items,
			&session.Assistant{ID: session.ItemID(fmt.Sprintf("a1-%d", i)), Blocks: []session.Block{session.ToolCall{Call: call, Name: "read", Input: `{}`, Complete: true}}},
			&session.Tool{ID: session.ItemID(fmt.Sprintf("t1-%d-0", i)), Call: call, Output: strings.Repeat("word ", 1000)})
	}
	at := prompt.Cut(items, 5000)
	if kept := prompt.Estimate(items[at:], "", nil); kept > 5000 || kept < 3500 {
		t.Errorf("%d tokens kept", kept)
	}
	if at := prompt.Cut(items, 1); at != len(items)-2 {
		t.Errorf("cut at %d, want before the last answer", at)
	}
	if at := prompt.Cut(items, 1_000_000); at != 0 {
		t.Errorf("cut at %d although all fits", at)
	}
	if at := prompt.Cut(nil, 10); at != 0 {
		t.Errorf("cut nothing at %d", at)
	}
}

func TestShortenOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := conversation(t)
		for i, it := range items {
			if r, ok := it.(*session.Tool); ok {
				long := *r
				long.Output = strings.Repeat(rapid.SampledFrom([]string{"x", "é\n", "漢"}).Draw(t, "output"), rapid.IntRange(0, 3000).Draw(t, "n"))
				if rapid.Bool().Draw(t, "image") {
					long.Images = []session.Image{{MIME: "image/png"}}
				}
				items[i] = &long
			}
		}
		before, limit := rapid.IntRange(-1, len(items)+1).Draw(t, "before"), rapid.IntRange(0, 1000).Draw(t, "limit")
		short := prompt.ShortenOld(items, before, limit)
		if len(short) != len(items) || prompt.Estimate(short, "", nil) > prompt.Estimate(items, "", nil)+5 {
			t.Fatalf("%d items of %d tokens became %d of %d", len(items), prompt.Estimate(items, "", nil), len(short), prompt.Estimate(short, "", nil))
		}
		for i, it := range short {
			r, ok := it.(*session.Tool)
			if (!ok || i >= before) && it != items[i] {
				t.Fatalf("item %d was changed", i)
			}
			if ok && i < before && (utf8.RuneCountInString(r.Output) > max(limit, 200) || len(r.Images) > 0) {
				t.Fatalf("%d characters and %d images are left", utf8.RuneCountInString(r.Output), len(r.Images))
			}
		}
		if again := prompt.ShortenOld(short, before, limit); !slices.Equal(again, short) {
			t.Fatal("shortening twice is not shortening once")
		}
	})
}

func TestCompactionRequest(t *testing.T) {
	items := []session.Item{
		user("u1", "Make it fast."), &session.User{ID: "u2", Note: session.NoteMode, Blocks: []session.Block{session.Text{Text: "mode"}}},
		&session.Assistant{Blocks: []session.Block{session.Reasoning{Text: "HIDDEN"}, session.Text{Text: "I read."}, session.ToolCall{Call: "c1", Name: "read", Input: `{"path":"a.go"}`}}},
		&session.Tool{Call: "c1", Name: "read", Input: `{"path":"a.go"}`, Status: session.Complete, Output: strings.Repeat("x", 5000) + "```"},
		&session.Tool{Call: "c2", Name: "edit", Input: `{"path":"b.go"}`, Status: session.Complete},
		&session.Tool{Call: "c3", Name: "write", Input: `{"path":"c.go"}`, Status: session.Failed, Output: "denied"},
		&session.Assistant{Status: session.Failed, Error: "overloaded"},
	}
	files := prompt.FilesOf(append(items, items...))
	if fmt.Sprint(files) != "{[a.go] [b.go]}" {
		t.Errorf("files: %v", files)
	}
	r := prompt.CompactionRequest(prompt.Summarize{Items: items, Previous: "EARLIER", Files: files, Model: session.ModelRef{ID: "m"}})
	text := textOf(r.Items[0])
	for _, want := range []string{
		"EARLIER", "User:\n```\nMake it fast.\n```\n", "Server:\n", "Assistant:\n```\nI read.", "Assistant calls read:\n```\n{\"path\":\"a.go\"}", "Result of read:\n````\nxxx",
		"characters left out", "Failure of write:\n```\ndenied", "error: overloaded", "Files read:\n- a.go\n", "Files changed:\n- b.go\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the request lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "HIDDEN") || len(r.Tools) != 0 || len(text) > 4000 || r.MaxOutput != prompt.SummaryTokens || r.Model.ID != "m" {
		t.Errorf("got %d bytes, %+v", len(text), r)
	}
	for _, heading := range []string{"Goal", "Constraints", "Decisions", "Progress", "Files read and changed", "Next steps"} {
		if !strings.Contains(r.System, "## "+heading+"\n") {
			t.Errorf("no heading %s", heading)
		}
	}
}

func TestCompactionRequestFitsItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []session.Item
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			items = append(items, user("u", fmt.Sprint("message ", i)), &session.Tool{Call: "c", Name: "bash", Output: strings.Repeat("some words 漢字 ", rapid.IntRange(0, 400).Draw(t, "words"))})
		}
		budget := rapid.IntRange(200, 20_000).Draw(t, "budget")
		r := prompt.CompactionRequest(prompt.Summarize{Items: items, Budget: budget})
		if n := prompt.Estimate(r.Items, "", nil); n > budget+100 {
			t.Fatalf("%d tokens, the budget is %d", n, budget)
		}
	})
}
