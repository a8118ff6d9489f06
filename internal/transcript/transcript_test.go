package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/transcript"
)

var update = flag.Bool("update", false, "write the golden files")

var png = []byte("\x89PNG\r\n\x1a\nnot really")

func load(img session.Image) ([]byte, error) {
	if img.Blob == "gone" {
		return nil, errors.New("gone")
	}
	return png, nil
}

// sample is a session with one of everything.
func sample() *session.State {
	m := session.ModelRef{Provider: "acme", ID: "m-1"}
	img := session.Image{MIME: "image/png", Blob: "abc", Size: 20}
	return &session.State{
		Head: session.Head{
			ID: "s1", Cwd: "/work", Name: "A <b>name</b>", Model: m, Thinking: session.ThinkingHigh, CreatedAt: 1_770_000_000_000, UpdatedAt: 1_770_000_009_000,
			Usage: session.Usage{Input: 10, Output: 5},
		},
		Settled: []session.Item{
			&session.User{ID: "u1", Run: 1, Prompt: "p1", At: 1_770_000_001_000, Blocks: []session.Block{session.Text{Text: "Look at <script>alert(1)</script> & this"}, img, session.Image{MIME: "image/svg+xml", Blob: "x"}, session.Image{MIME: "image/png", Blob: "gone", Size: 3}}},
			&session.Assistant{
				ID: "a1-1", Run: 1, Pass: 1, Model: m, ResponseModel: "m-1-2026", At: 1_770_000_002_000, Status: session.Complete, Stop: session.StopToolUse, Usage: &session.Usage{Input: 10, Output: 5, Cost: session.Cost{Input: 0.5}},
				Blocks: []session.Block{session.Reasoning{Text: "hm\nhm", Signature: "SIG"}, session.Reasoning{Signature: "ENC", Redacted: true}, session.Text{Text: "I look."}, session.ToolCall{Call: "call1-1-0", Name: "bash", Input: `{"command":"ls <dir>"}`, Complete: true}, session.ToolCall{Call: "call1-1-1", Name: "read", Input: `{"pa`}},
			},
			&session.Tool{ID: "t1-1-0", Run: 1, Call: "call1-1-0", Name: "bash", Input: `{"command":"ls <dir>"}`, Status: session.Complete, Output: "```\n</pre><b>a.go</b>\n```", Images: []session.Image{img}, Details: json.RawMessage(`{"n":1}`), At: 1_770_000_003_000},
			&session.Tool{ID: "t1-1-1", Run: 1, Call: "call1-1-1", Name: "read", Input: `{"pa`, Status: session.Failed, Output: "not complete", At: 1_770_000_003_000},
			&session.Assistant{ID: "a1-2", Run: 1, Pass: 2, Model: m, At: 1_770_000_004_000, Status: session.Failed, Error: "overloaded"},
			&session.User{ID: "u2", Run: 2, At: 1_770_000_005_000, Blocks: []session.Block{session.Text{Text: "again"}}},
		},
		Run: &session.Run{ID: 2, Live: &session.Assistant{ID: "a2-1", Run: 2, Pass: 1, Model: m, At: 1_770_000_006_000, Blocks: []session.Block{session.Text{Text: "So"}}}},
	}
}

func TestGolden(t *testing.T) {
	api := func(m session.ModelRef) string { return m.Provider + "-api" }
	for name, write := range map[string]func(io.Writer) error{
		"session.md":    func(w io.Writer) error { return transcript.Markdown(w, sample()) },
		"session.html":  func(w io.Writer) error { return transcript.HTML(w, sample(), load) },
		"session.jsonl": func(w io.Writer) error { return transcript.JSONLines(w, sample()) },
		"session.pi.jsonl": func(w io.Writer) error {
			return transcript.WritePi(w, sample(), transcript.PiOptions{Load: load, API: api})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || b.String() != string(want) {
			t.Errorf("%s (%v): run with -update and look at the difference; got\n%s", name, err, b.String())
		}
	}
}

func TestHTMLIsInert(t *testing.T) {
	var b bytes.Buffer
	if err := transcript.HTML(&b, sample(), load); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<b>", "</pre><", "svg+xml;base64", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if strings.Count(page, `src="data:image/png;base64,`) != 2 || strings.Count(page, "Image: image/") != 2 {
		t.Errorf("images: %s", page)
	}
}

type fullDisk struct{ left int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestWriteErrorsComeBack(t *testing.T) {
	for _, left := range []int{0, 200} {
		for name, write := range map[string]func(io.Writer) error{
			"markdown": func(w io.Writer) error { return transcript.Markdown(w, sample()) },
			"html":     func(w io.Writer) error { return transcript.HTML(w, sample(), nil) },
			"lines":    func(w io.Writer) error { return transcript.JSONLines(w, sample()) },
			"pi":       func(w io.Writer) error { return transcript.WritePi(w, sample(), transcript.PiOptions{}) },
		} {
			if write(&fullDisk{left: left}) == nil {
				t.Errorf("%s: a full disk went unnoticed", name)
			}
		}
	}
}
