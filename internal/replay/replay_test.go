package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/replay"
	"github.com/roost-dev/roost/internal/session"
)

// data makes a data directory with a session that has a settled run and another one.
func data(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	state := &session.State{}
	for _, e := range []session.Event{
		session.Created{ID: "s1", Cwd: "/work", Name: "<b>", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: session.ThinkingOff},
		session.RunStarted{Run: 1, Item: "u1", Blocks: []session.Block{session.Text{Text: "first"}}},
		session.RunEnded{},
		session.RunStarted{Run: 2, Item: "u2", Blocks: []session.Block{session.Text{Text: "second"}}},
		session.PassStarted{Pass: 1, Item: "a1", Model: session.ModelRef{Provider: "p", ID: "m"}},
		session.BlockStarted{Block: session.Text{}},
		session.Delta{Text: "half an ans"},
	} {
		r := session.Record{Seq: state.Seq + 1, At: 1_790_000_000_000, Event: e}
		state.Apply(r)
		if err := log.Append(t.Context(), "s1", r.Seq-1, []session.Record{r}); err != nil {
			t.Fatal(err)
		}
		if r.Seq == 3 {
			if err := log.Compact(t.Context(), "s1", eventlog.Snapshot{Head: state.Head, Items: state.Settled}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func show(t *testing.T, dir, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := replay.Print(t.Context(), dir, "s1", format, &out); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%s: %s", format, line)
		}
	}
	return out.String()
}

func TestEvents(t *testing.T) {
	const want = `{"seq":3,"at":"2026-09-21T14:13:20.000Z","kind":"snapshot","event":{"items":1}}
{"seq":4,"at":"2026-09-21T14:13:20.000Z","kind":"run_started","event":{"run":2,"item":"u2","blocks":[{"text":{"text":"second"}}]}}
{"seq":5,"at":"2026-09-21T14:13:20.000Z","kind":"pass_started","event":{"pass":1,"item":"a1","model":{"provider":"p","id":"m"}}}
{"seq":6,"at":"2026-09-21T14:13:20.000Z","kind":"block_started","event":{"block":{"text":{}}}}
{"seq":7,"at":"2026-09-21T14:13:20.000Z","kind":"delta","event":{"text":"half an ans"}}
`
	if got := show(t, data(t), "events"); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestProjections(t *testing.T) {
	dir := data(t)
	for format, want := range map[string][]string{
		"roost":  {`{"epoch":"1","seq":"7"}`, `"name":"<b>"`, `"itemCount":3`, `"first"`, `"second"`, `"half an ans"`},
		"cursor": {`"checkpoint"`, `"blobs"`, `"turns"`},
		"pi":     {`"type":"event"`, `"phase":"turn"`, `"revision":7`, `"first"`, `"second"`, `"half an ans"`},
	} {
		got := show(t, dir, format)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %s:\n%s", format, w, got)
			}
		}
	}
}

func TestEveryFormatIsListed(t *testing.T) {
	dir := data(t)
	for _, format := range replay.Formats() {
		if show(t, dir, format) == "" {
			t.Errorf("%s prints nothing", format)
		}
	}
}

func TestWhatCanBeReadIsPrinted(t *testing.T) {
	dir := data(t)
	path := filepath.Join(dir, sqlitelog.FileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The tag of the delta's text becomes that of a field that is none.
	if err := os.WriteFile(path, bytes.Replace(file, []byte("\x12\x0bhalf an ans"), []byte("\x17\x0bhalf an ans"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = replay.Print(t.Context(), dir, "s1", "events", &out)
	if !errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), "after event 6") || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestRefusals(t *testing.T) {
	dir := data(t)
	for _, c := range []struct {
		dir, id, format string
		want            error
	}{
		{dir, "other", "events", eventlog.ErrNotFound},
		{filepath.Join(dir, "missing"), "s1", "events", os.ErrNotExist},
	} {
		if err := replay.Print(t.Context(), c.dir, session.ID(c.id), c.format, &bytes.Buffer{}); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := replay.Print(t.Context(), dir, "s1", "cbor", &bytes.Buffer{}); err == nil {
		t.Error("an unknown format was printed")
	}
}
