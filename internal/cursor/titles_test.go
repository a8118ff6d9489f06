package cursor

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// shortAsk is a model that answers every question with what it is made of.
type shortAsk struct {
	answer string
	err    error
	system string
	text   string
	model  session.ModelRef
}

func (s *shortAsk) ask(_ context.Context, model session.ModelRef, system, text string) (string, error) {
	s.model, s.system, s.text = model, system, text
	return s.answer, s.err
}

// titleRequests are the calls that ask a model, with a request in both codecs.
var titleRequests = map[string]struct{ inProto, inJSON, field string }{
	agentService + "NameAgent":          {"\n\x03fix", `{"userMessage":"fix"}`, "name"},
	aiService + "NameTab":               {"\n\x07\n\x03fix\x10\x01\n\x05\n\x03it!", `{"messages":[{"text":"fix","type":1},{"text":"it!"}]}`, "name"},
	aiService + "WriteGitCommitMessage": {"\n\x03fix\x12\x03old", `{"diffs":["fix"],"previousCommitMessages":["old"]}`, "commitMessage"},
	aiService + "WriteGitBranchName":    {"\n\x03fix", `{"diffs":["fix"]}`, "branchName"},
}

func TestTitlesComeFromTheDefaultModel(t *testing.T) {
	for path, r := range titleRequests {
		model := &shortAsk{answer: "fix-it"}
		h := newTestCalls(t, func(o *callsOptions) { o.Ask = model.ask })
		if got := askCall(t, h, cursorwire.Proto, path, []byte(r.inProto)).Body.String(); got != "\n\x06fix-it" {
			t.Errorf("%s: %q", path, got)
		}
		inProto := model.text
		got := askCall(t, h, cursorwire.JSON, path, []byte(r.inJSON)).Body.String()
		if strings.ReplaceAll(got, " ", "") != `{"`+r.field+`":"fix-it"}` {
			t.Errorf("%s: %s", path, got)
		}
		if model.text != inProto || !strings.Contains(inProto, "fix") || model.system == "" || model.model.String() != "fake/test-model" {
			t.Errorf("%s asked %s: %q, %q", path, model.model, inProto, model.text)
		}
	}
}

// Without an answer there is an empty one, and never an error (section 8.8).
func TestTitlesWithoutAnAnswerAreEmpty(t *testing.T) {
	failing := &shortAsk{answer: "half", err: errors.New("provider down")}
	for name, ask := range map[string]func(context.Context, session.ModelRef, string, string) (string, error){
		"no model": nil, "failing": failing.ask, "silent": (&shortAsk{answer: " \n\t"}).ask,
	} {
		h := newTestCalls(t, func(o *callsOptions) { o.Ask = ask })
		for path, r := range titleRequests {
			inProto, inJSON := askCall(t, h, cursorwire.Proto, path, []byte(r.inProto)), askCall(t, h, cursorwire.JSON, path, []byte(r.inJSON))
			if inProto.Code != 200 || inProto.Body.Len() != 0 || inJSON.Code != 200 || inJSON.Body.String() != "{}" {
				t.Errorf("%s, %s: %d %q, %d %q", name, path, inProto.Code, inProto.Body, inJSON.Code, inJSON.Body)
			}
		}
	}
}

func TestNothingIsAskedAboutNothing(t *testing.T) {
	model := &shortAsk{answer: "x"}
	h := newTestCalls(t, func(o *callsOptions) { o.Ask = model.ask })
	for path := range titleRequests {
		for _, body := range []string{"", `{}`, `{"diffs":[],"messages":[{}],"userMessage":""}`, `{"diffs":[""],"userMessage":"  "}`, `{"diffs":{"a":1},"messages":"x"}`} {
			if w := askCall(t, h, cursorwire.JSON, path, []byte(body)); w.Code != 200 || w.Body.String() != "{}" {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
	if model.system != "" {
		t.Errorf("asked %q", model.text)
	}
}

// A model that does not answer holds nobody up: not the client, whose own limit counts as well, and not
// the server, which asks few questions at once.
func TestAskingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		h := newTestCalls(t, func(o *callsOptions) {
			o.Ask = func(ctx context.Context, _ session.ModelRef, _, _ string) (string, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				<-ctx.Done()
				return "late", ctx.Err()
			}
		})
		began := time.Now()
		done := make(chan time.Duration)
		for range 3 * maxAsking {
			go func() {
				askCall(t, h, cursorwire.JSON, agentService+"NameAgent", []byte(`{"userMessage":"x"}`))
				done <- time.Since(began)
			}()
		}
		for range 3 * maxAsking {
			if after := <-done; after != askTimeout {
				t.Errorf("an answer after %s", after)
			}
		}
		if most.Load() != maxAsking {
			t.Errorf("%d questions at once", most.Load())
		}
		began = time.Now()
		askCall(t, h, cursorwire.JSON, agentService+"NameAgent", []byte(`{"userMessage":"x"}`), "Connect-Timeout-Ms", "1500")
		if after := time.Since(began); after != 1500*time.Millisecond {
			t.Errorf("the client's own limit: %s", after)
		}
	})
}

func TestTitle(t *testing.T) {
	for answer, want := range map[string]string{
		"Fix the parser":                  "Fix the parser",
		"\n  \"Fix the parser.\"  \nmore": "Fix the parser",
		"**Fix `x`**":                     "Fix `x",
		"# Heading":                       "Heading",
		"“Über Bäume”":                    "Über Bäume",
		"a\x00b\xff":                      "a\x00b",
		strings.Repeat("é", 200):          strings.Repeat("é", maxTitle),
	} {
		model := &shortAsk{answer: answer}
		h := newTestCalls(t, func(o *callsOptions) { o.Ask = model.ask })
		got := new(agentv1.NameAgentResponse)
		answerCall(t, h, cursorwire.Proto, agentService+"NameAgent", &agentv1.NameAgentRequest{UserMessage: strings.Repeat("ä", maxUnary/4)}, got)
		if got.Name != want {
			t.Errorf("%q: %q, want %q", answer, got.Name, want)
		}
		if len(model.text) > maxTitleText || !utf8.ValidString(model.text) {
			t.Errorf("%d bytes went to the model", len(model.text))
		}
	}
}

func TestCommitMessage(t *testing.T) {
	for answer, want := range map[string]string{
		"Fix it\n\nBecause.\n":               "Fix it\n\nBecause.",
		"```\nFix it\n```":                   "Fix it",
		"```text\nFix it\n\nBecause.\n```\n": "Fix it\n\nBecause.",
		"```":                                "",
		strings.Repeat("x", 2*maxCommit):     strings.Repeat("x", maxCommit),
	} {
		model := &shortAsk{answer: answer}
		h := newTestCalls(t, func(o *callsOptions) { o.Ask = model.ask })
		body := []byte(`{"diffs":["` + strings.Repeat("+", 2*maxDiffText) + `"],"previousCommitMessages":["Old one"]}`)
		got := askCall(t, h, cursorwire.JSON, aiService+"WriteGitCommitMessage", body).Body.Bytes()
		if text := (wirePart{cursorwire.JSON, got}).texts(1, "commitMessage"); strings.Join(text, "") != want {
			t.Errorf("%.40q: %.80q, want %.40q", answer, text, want)
		}
		if !strings.Contains(model.text, "Old one") || len(model.text) > maxDiffText+maxTitleText+100 {
			t.Errorf("%d bytes went to the model: %.100q", len(model.text), model.text)
		}
	}
}

func TestBranchName(t *testing.T) {
	for answer, want := range map[string]string{
		"fix-parser": "fix-parser", "Fix the Parser": "fix-the-parser", "`feat/new_thing`": "feat/new_thing",
		"--fix--it--": "fix-it", "a//b/": "a/b", "a/-b": "a/b", "../../etc": "etc", "a..b~^:?*[\\": "ab", "@{": "", "ветка": "",
		"```\nx\n```": "x", strings.Repeat("ab-", 100): strings.TrimSuffix(strings.Repeat("ab-", maxBranch/3), "-"),
	} {
		if got := branch(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

func FuzzWirePart(f *testing.F) {
	for _, r := range titleRequests {
		f.Add([]byte(r.inProto))
		f.Add([]byte(r.inJSON))
	}
	f.Add([]byte("\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte(`{"messages":[[[{}]]],"diffs":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, codec := range bothCodecs {
			size := 0
			for _, p := range (wirePart{codec, data}).all(1, "messages") {
				size += len(p.data)
				for _, s := range p.texts(1, "text") {
					if !utf8.ValidString(s) && codec == cursorwire.JSON {
						t.Errorf("%q is no text", s)
					}
				}
			}
			if size > len(data) {
				t.Errorf("%d bytes out of %d", size, len(data))
			}
		}
		// What protobuf takes for a message has its texts found.
		m := new(agentv1.NameAgentRequest)
		if proto.Unmarshal(data, m) == nil && m.UserMessage != "" {
			found := (wirePart{cursorwire.Proto, data}).texts(1, "userMessage")
			if len(found) == 0 || found[len(found)-1] != m.UserMessage {
				// The last one counts, unless it is empty.
				t.Errorf("%q is not in %q", m.UserMessage, found)
			}
		}
	})
}
