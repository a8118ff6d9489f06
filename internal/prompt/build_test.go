package prompt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/project"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/anthropic"
	"github.com/roost-dev/roost/internal/provider/openaichat"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
)

var errOffline = errors.New("offline")

// wire keeps the body of the last request and answers none.
type wire struct{ body string }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	w.body = string(b)
	return nil, errors.Join(errOffline, err)
}

// encoders returns each dialect as a function from a request to its bytes.
func encoders() map[string]func(*testing.T, *provider.Request) string {
	send := func(m provider.Model, w *wire) func(*testing.T, *provider.Request) string {
		return func(t *testing.T, req *provider.Request) string {
			t.Helper()
			w.body = ""
			var failure error
			for _, err := range m.Stream(t.Context(), req) { // ends at once with an error
				failure = err
			}
			if w.body == "" && !strings.Contains(fmt.Sprint(failure), "nothing to send") { // but empty messages
				t.Fatalf("nothing was sent: %v", failure)
			}
			return w.body
		}
	}
	a, o := &wire{}, &wire{}
	return map[string]func(*testing.T, *provider.Request) string{
		"anthropic":  send(anthropic.New(anthropic.Options{Name: "a", BaseURL: "http://a", HTTP: &http.Client{Transport: a}}), a),
		"openaichat": send(openaichat.New(openaichat.Options{Name: "o", BaseURL: "http://o", HTTP: &http.Client{Transport: o}}), o),
	}
}

// stem is what a request must have in common with the next: all but cache marks and the
// brackets that close it.
func stem(body string) string {
	body = strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")
	return strings.TrimRight(body, "]}\n")
}

func someContext() prompt.Context {
	return prompt.Context{
		Env:       prompt.Env{Cwd: "/work", OS: "linux", Shell: "/bin/sh", Date: "2026-01-31", Branch: "main"},
		UserRules: []string{"Be brief."},
		Rules: []project.Rule{
			{Path: "AGENTS.md", Kind: project.Always, Text: "Use `make`.\n```\nfence\n```"},
			{Path: ".cursor/rules/go.mdc", Kind: project.Glob, Globs: []string{"*.go", "go.mod"}, Text: "go"},
			{Path: ".cursor/rules/db.mdc", Kind: project.Agent, Description: "When the database changes", Text: "db"},
			{Path: ".cursor/rules/m.mdc", Kind: project.Manual, Text: "SECRET"},
		},
		Skills: []project.Skill{{Name: "pdf", Description: "Read PDF files", Path: ".roost/skills/pdf/SKILL.md"}, {Name: "bare", Path: "b/SKILL.md"}},
	}
}

var offered = []provider.Tool{{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}

func seeing() catalog.Model {
	return catalog.Model{Input: []string{catalog.InputText, catalog.InputImage}, MaxOutput: 1000}
}

// Each request begins with all of the one before, in both dialects, while the session goes
// on, with notes and after a compaction.
func TestRequestsGrowAtTheirEnd(t *testing.T) {
	for name, encode := range encoders() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				state, model := &session.State{}, seeing()
				if rapid.Bool().Draw(rt, "blind") {
					model.Input = []string{catalog.InputText}
				}
				before := ""
				for _, r := range testkit.History(rt) {
					state.Apply(r)
					switch r.Event.(type) {
					case session.ThinkingSet, session.CompactionEnded, session.Rewound:
						before = "" // these change what comes first
					}
					if state.Run == nil || state.Run.Live == nil {
						continue
					}
					req := prompt.Request(state, model, offered)
					if req.Continue {
						continue
					}
					body := encode(t, req)
					if again := encode(t, prompt.Request(state, model, offered)); again != body {
						rt.Fatalf("the same state gave\n%s\nand\n%s", body, again)
					}
					if !strings.HasPrefix(stem(body), stem(before)) {
						rt.Fatalf("a request does not go on where the one before ended:\n%s\n%s", stem(before), stem(body))
					}
					before = body
				}
			})
		})
	}
}

func running(items ...session.Item) *session.State {
	return &session.State{
		Head:    session.Head{ID: "s1", Cwd: "/work", CreatedAt: 1_770_000_000_000, Model: session.ModelRef{Provider: "p", ID: "m"}},
		Settled: items, Run: &session.Run{ID: 1, Live: &session.Assistant{ID: "a9-9", Model: session.ModelRef{Provider: "p", ID: "m"}}},
	}
}

func user(id, text string) *session.User {
	return &session.User{ID: session.ItemID(id), Blocks: []session.Block{session.Text{Text: text}}}
}

func textOf(it session.Item) string {
	switch it := it.(type) {
	case *session.User:
		return session.BlockText(it.Blocks[0])
	case *session.Assistant:
		return session.BlockText(it.Blocks[0])
	case *session.Tool:
		return it.Output
	}
	return ""
}

func TestLayout(t *testing.T) {
	r := prompt.Request(running(user("u1", "hello")), seeing(), offered)
	if len(r.Items) != 1 || textOf(r.Items[0]) != "hello" || r.System != prompt.System(session.ModeAgent) || r.MaxOutput != 1000 || r.CacheKey != "s1" {
		t.Fatalf("got %+v", r)
	}
	first := prompt.Preamble(someContext())
	for _, want := range []string{
		"Working directory: /work\nOperating system: linux\nShell: /bin/sh\nDate: 2026-01-31\nGit branch: main\n",
		"Be brief.", "AGENTS.md:\n````\nUse `make`.\n```\nfence\n```\n````\n",
		"- .cursor/rules/go.mdc, for files that match *.go, go.mod\n", "- .cursor/rules/db.mdc: When the database changes\n",
		"- pdf (.roost/skills/pdf/SKILL.md): Read PDF files\n", "- bare (b/SKILL.md)\n",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the first message lacks %q:\n%s", want, first)
		}
	}
	if strings.Contains(first, "SECRET") {
		t.Error("a manual rule is told without being asked for")
	}
	if empty := prompt.Preamble(prompt.Context{}); strings.Contains(empty, "#") {
		t.Errorf("headings without content: %s", empty)
	}
}

func TestModesShareTheirBeginning(t *testing.T) {
	agent := prompt.System(session.ModeAgent)
	common, _, _ := strings.Cut(agent, "Mode: ")
	seen := map[string]bool{}
	for _, m := range session.Modes {
		s := prompt.System(m)
		if !strings.HasPrefix(s, common+"Mode: "+string(m)) || seen[s] || len(s) > 2500 {
			t.Errorf("%s: %s", m, s)
		}
		seen[s] = true
	}
	if prompt.System("no such") != agent {
		t.Error("an unknown mode is not agent")
	}
}

func TestCutAnswerGoesOn(t *testing.T) {
	s := running(user("u1", "hello"))
	if prompt.Request(s, seeing(), offered).Continue {
		t.Error("an answer that has said nothing is gone on with")
	}
	s.Run.Live.Blocks = []session.Block{session.Text{Text: "Hel"}}
	if r := prompt.Request(s, seeing(), nil); !r.Continue || r.Items[len(r.Items)-1] != session.Item(s.Run.Live) {
		t.Errorf("a cut answer is not gone on with: %+v", r)
	}
}

func TestModelWithoutEyes(t *testing.T) {
	img := session.Image{MIME: "image/png", Blob: "b"}
	u := &session.User{ID: "u1", Blocks: []session.Block{session.Text{Text: "see"}, img}}
	tool := &session.Tool{ID: "t1", Call: "c1", Status: session.Complete, Output: "shown", Images: []session.Image{img, img}}
	call := &session.Assistant{ID: "a1", Blocks: []session.Block{session.ToolCall{Call: "c1"}}}
	r := prompt.Request(running(u, call, tool), catalog.Model{}, nil)
	if _, ok := r.Items[0].(*session.User).Blocks[1].(session.Text); !ok {
		t.Error("the user's image is still there")
	}
	if got := r.Items[2].(*session.Tool); len(got.Images) != 0 || strings.Count(got.Output, "cannot see") != 2 || !strings.HasPrefix(got.Output, "shown\n") {
		t.Errorf("got %+v", got)
	}
	if u.Blocks[1] != session.Block(img) || len(tool.Images) != 2 {
		t.Error("the transcript was changed")
	}
	r = prompt.Request(running(u, call, tool), seeing(), nil)
	if r.Items[0] != session.Item(u) || r.Items[2] != session.Item(tool) {
		t.Error("a model with eyes is told something else than the transcript")
	}
}

func TestMessage(t *testing.T) {
	img := session.Image{MIME: "image/png", Blob: "b"}
	blocks := prompt.Message("look", []prompt.File{
		{Path: "a.go", Text: "package a\n", From: 7}, {Path: "b\n.md", Text: "```\nx\n```"}, {Path: "c", Text: strings.Repeat("é", prompt.MaxAttached)},
	}, []session.Image{img})
	if len(blocks) != 5 || blocks[0] != session.Block(session.Text{Text: "look"}) || blocks[4] != session.Block(img) {
		t.Fatalf("got %v", blocks)
	}
	for i, want := range []string{
		"Attached file a.go, from line 7:\n```\npackage a\n```\n", "Attached file \"b\\n.md\":\n````\n```\nx\n```\n````\n",
	} {
		if got := session.BlockText(blocks[i+1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := session.BlockText(blocks[3]); len(got) > prompt.MaxAttached+300 || !strings.HasSuffix(got, "[The attachment has 131072 bytes; only the first 65536 are shown. Read the file for the rest.]\n") {
		t.Errorf("a cut is not marked: %q", got[len(got)-150:])
	}
	var many []prompt.File
	for range 20 {
		many = append(many, prompt.File{Path: "p", Text: strings.Repeat("x", 50_000)})
	}
	total := 0
	for _, b := range prompt.Message("", many, nil) {
		total += len(session.BlockText(b))
	}
	if total > prompt.MaxAttachments+20*300 {
		t.Errorf("%d bytes attached", total)
	}
}

// An answer that was cut, and cut again before its first word, goes on where its text ends.
func TestCutTwice(t *testing.T) {
	cut := func(text string) *session.Assistant {
		return &session.Assistant{Status: session.Failed, Blocks: []session.Block{session.Text{Text: text}}}
	}
	for _, tc := range []struct {
		items []session.Item
		want  bool
	}{
		{[]session.Item{user("u1", "q"), cut("a")}, true},
		{[]session.Item{user("u1", "q"), cut("a"), cut(" ")}, true},
		{[]session.Item{user("u1", "q"), cut(" ")}, false},
		{[]session.Item{user("u1", "q"), cut("a"), user("u2", "q")}, false},
	} {
		if got := prompt.Request(running(tc.items...), seeing(), offered).Continue; got != tc.want {
			t.Errorf("%v: %v", textOf(tc.items[len(tc.items)-1]), got)
		}
	}
}
