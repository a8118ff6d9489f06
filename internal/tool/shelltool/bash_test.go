package shelltool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/shelltool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell is one place to run commands in.
type shell struct {
	dir, out string
	bash     tool.Tool
	progress []tool.Progress // of the last command
}

func newShell(t testing.TB) *shell {
	t.Helper()
	return &shell{dir: t.TempDir(), out: t.TempDir(), bash: shelltool.New(shelltool.Environ())}
}

func (s *shell) run(ctx context.Context, t testing.TB, input any) tool.Result {
	t.Helper()
	raw, ok := input.(string)
	if !ok {
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(data)
	}
	s.progress = nil
	call := tool.Call{Input: json.RawMessage(raw), Dir: s.dir, OutputDir: s.out, Env: []string{"ROOST_TEST=from the call"}}
	res := s.bash.Run(ctx, call, func(p tool.Progress) { s.progress = append(s.progress, p) })
	if !utf8.ValidString(res.Text) || len(res.Text) > tool.MaxBytes+tool.MaxNotice || strings.Count(res.Text, "\n") > tool.MaxLines+8 {
		t.Fatalf("the result is over the limits: %d bytes", len(res.Text))
	}
	return res
}

// command runs a command line without a limit in time.
func (s *shell) command(t testing.TB, line string) tool.Result {
	t.Helper()
	return s.run(t.Context(), t, map[string]any{"command": line})
}

// shown is what a client shows after the progress of the last command.
func (s *shell) shown() (text string, longest int) {
	for _, p := range s.progress {
		if p.Replace {
			text = ""
		}
		text += p.Text
		longest = max(longest, len(text))
	}
	return text, longest
}

func TestResults(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct {
		command, text string
		isError       bool
	}{
		{"echo a; echo b >&2; echo c", "a\nb\nc", false},
		{"true", "(no output)", false},
		{"printf 'no end'", "no end", false},
		{"echo out; exit 3", "out\n\nCommand exited with code 3", true},
		{"false", "(no output)\n\nCommand exited with code 1", true},
		{"kill -9 $$", "(no output)\n\nCommand exited with code 137", true},
		{"kill -TERM $$", "(no output)\n\nCommand exited with code 143", true},
		{"no-such-program-here 2>/dev/null", "(no output)\n\nCommand exited with code 127", true},
		{"cat", "(no output)", false}, // there is no input
		{"echo $ROOST_TEST", "from the call", false},
		{"[[ $(pwd) == \"$PWD\" ]] && echo same", "same", false},
		{"test -t 1 || echo no terminal; (: </dev/tty) 2>/dev/null || echo none", "no terminal\nnone", false},
		{`printf 'a\xffb\0c\n'`, "a\uFFFDb\uFFFDc", false},
	} {
		if res := s.command(t, c.command); res.Text != c.text || res.IsError != c.isError || res.Details != nil {
			t.Errorf("%s: got %q, %v, %s; want %q, %v", c.command, res.Text, res.IsError, res.Details, c.text, c.isError)
		}
	}
}

func TestWrongInput(t *testing.T) {
	s := newShell(t)
	for input, why := range map[string]string{
		`{}`:                                               `"command"`,
		`{"command":""}`:                                   "/command",
		`{"command":["ls"]}`:                               "/command",
		`{"command":"ls","timeout":0}`:                     "/timeout",
		`{"command":"ls","timeout":-1}`:                    "/timeout",
		`{"command":"ls","timeout":2147483.648}`:           "/timeout",
		`{"command":"ls","timeout":"5"}`:                   "/timeout",
		`{"command":"ls","cwd":"/"}`:                       "cwd",
		`{"command":"ls \u0000"}`:                          "NUL",
		`{"command":"` + strings.Repeat("x", 1<<20) + `"}`: "too long for the system",
	} {
		if res := s.run(t.Context(), t, input); !res.IsError || !strings.Contains(res.Text, why) {
			t.Errorf("%.60s: got %q, want %q", input, res.Text, why)
		}
	}
	s.dir = filepath.Join(s.dir, "gone")
	if res := s.command(t, "ls"); !res.IsError || !strings.Contains(res.Text, "does not exist") {
		t.Errorf("missing directory: %q", res.Text)
	}
}

func TestEnvironHides(t *testing.T) {
	t.Setenv("MODEL_KEY_OF_TEST", "key")
	t.Setenv("MODEL_KEY_OF_TEST_2", "other")
	env := shelltool.Environ("MODEL_KEY_OF_TEST")()
	if slices.Contains(env, "MODEL_KEY_OF_TEST=key") || !slices.Contains(env, "MODEL_KEY_OF_TEST_2=other") {
		t.Errorf("got %v", env)
	}
	s := newShell(t)
	s.bash = shelltool.New(shelltool.Environ("MODEL_KEY_OF_TEST"))
	if got := s.command(t, "env").Text; strings.Contains(got, "MODEL_KEY_OF_TEST=") || !strings.Contains(got, "MODEL_KEY_OF_TEST_2=other") {
		t.Errorf("got %q", got)
	}
}

func fullOutput(t *testing.T, res tool.Result) string {
	t.Helper()
	var d struct{ FullOutputPath string }
	if err := json.Unmarshal(res.Details, &d); err != nil || !strings.Contains(res.Text, d.FullOutputPath) {
		t.Fatalf("details %q, %v", res.Details, err)
	}
	info, err := os.Stat(d.FullOutputPath)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	data, err := os.ReadFile(d.FullOutputPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLongOutput(t *testing.T) {
	s := newShell(t)
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&all, i+1)
	}
	res := s.command(t, "seq 3000")
	if !strings.HasPrefix(res.Text, "1001\n1002\n") || !strings.Contains(res.Text, "\n3000\n\n[Showing lines 1001-3000 of 3000. Full output: "+s.out) {
		t.Errorf("got %.20q … %q", res.Text, res.Text[len(res.Text)-200:])
	}
	if got := fullOutput(t, res); got != all.String() {
		t.Errorf("the file has %d bytes, want %d", len(got), all.Len())
	}
	res = s.command(t, "seq 2000")
	if res.Details != nil || strings.Contains(res.Text, "[") {
		t.Errorf("2000 lines were cut: %q", res.Text[len(res.Text)-200:])
	}
	res = s.command(t, "head -c 300000 /dev/zero | tr '\\0' x; exit 1")
	if !strings.HasPrefix(res.Text, strings.Repeat("x", tool.MaxBytes)+"\n\n[Showing the last 50.0 KiB of line 1, the last. Full") || !strings.HasSuffix(res.Text, "code 1") {
		t.Errorf("got … %q", res.Text[len(res.Text)-200:])
	}
	if got := fullOutput(t, res); got != strings.Repeat("x", 300000) {
		t.Errorf("the file has %d bytes", len(got))
	}
	// Too long only once it is made valid.
	res = s.command(t, `for i in {1..20000}; do printf 'a\xff'; done`)
	if got := fullOutput(t, res); got != strings.Repeat("a\xff", 20000) {
		t.Errorf("the file has %d bytes", len(got))
	}
}

func TestOutputThatCannotBeKept(t *testing.T) {
	s := newShell(t)
	s.out = filepath.Join(s.out, "gone")
	if res := s.command(t, "seq 3000"); res.IsError || res.Details != nil || !strings.Contains(res.Text, "could not be kept") {
		t.Errorf("got … %q", res.Text[len(res.Text)-200:])
	}
}

func TestFloodIsBounded(t *testing.T) {
	s := newShell(t)
	res := s.run(t.Context(), t, `{"command":"yes flood","timeout":1.5}`)
	if !res.IsError || !strings.HasSuffix(res.Text, "Command timed out after 1.5 seconds") || strings.Contains(res.Text, "unavailable") {
		t.Errorf("got … %q", res.Text[len(res.Text)-200:])
	}
	if got := len(fullOutput(t, res)); got > 64<<20 {
		t.Errorf("the file has %d bytes", got)
	}
	if _, longest := s.shown(); longest > tool.MaxBytes || len(s.progress) > 17 {
		t.Errorf("%d progress, %d bytes shown", len(s.progress), longest)
	}
}

func TestSpillStopsAtItsLimit(t *testing.T) {
	s := newShell(t)
	res := s.command(t, "head -c 70000000 /dev/zero | tr '\\0' '\\n'")
	if got := len(fullOutput(t, res)); got != 64<<20 || !strings.Contains(res.Text, "only its first 64.0 MiB") {
		t.Errorf("%d bytes, %q", got, res.Text[len(res.Text)-200:])
	}
}

func TestProgress(t *testing.T) {
	s := newShell(t)
	start := time.Now()
	s.command(t, `for i in 1 2 3 4; do printf 'é%d' $i; printf '\xe2'; sleep 0.15; printf '\x82\xac\n'; done`)
	if len(s.progress) < 4 || s.progress[0] != (tool.Progress{}) {
		t.Fatalf("got %v", s.progress)
	}
	if limit := int(time.Since(start)/(100*time.Millisecond)) + 1; len(s.progress) > limit {
		t.Errorf("%d progress in %v", len(s.progress), time.Since(start))
	}
	const all = "é1€\né2€\né3€\né4€\n"
	if text, _ := s.shown(); !strings.HasPrefix(all, text) || !strings.HasPrefix(text, "é1€\né2€\né3€\n") {
		t.Errorf("shown: %q", text)
	}
}
