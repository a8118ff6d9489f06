package cursortool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShellsFollow(t *testing.T) {
	s := NewShells()
	s.Add(Shell{ID: 7, Exec: 3, seed: "before\n"})
	for _, text := range []string{
		`{"shell_stream":{"stdout":{"data":"out\n"}}}`, `{"shell_stream":{"stderr":{"data":"err\n"}}}`,
		`{"shell_stream":{"hook_context":{}}}`, `{}`, `{"read_result":{}}`,
	} {
		if !s.Result(3, execMessage(t, text)) {
			t.Errorf("%s was not taken", text)
		}
		if s.Result(4, execMessage(t, text)) || s.Closed(4) {
			t.Errorf("%s of another request was taken", text)
		}
	}
	b := s.byID[7]
	if got := b.out.last(shellAwait); got != "before\nout\nerr\n" || b.ended || !b.live {
		t.Errorf("got %q, ended %v, live %v", got, b.ended, b.live)
	}
	s.Result(3, execMessage(t, `{"shell_stream":{"exit":{"code":4294967295}}}`))
	if !b.ended || b.code == nil || *b.code != -1 {
		t.Errorf("after its exit: %+v", b)
	}
	s.Result(3, execMessage(t, `{"shell_result":{"failure":{"exit_code":9}}}`))
	if *b.code != -1 || !s.Closed(3) || !b.ended {
		t.Errorf("a second end counts: %+v", b)
	}
}

func TestShellsEnd(t *testing.T) {
	for text, want := range map[string]string{
		`{"shell_result":{"success":{"exit_code":0}}}`:                     "0",
		`{"shell_result":{"failure":{"exit_code":5}}}`:                     "5",
		`{"shell_result":{"spawn_error":{}}}`:                              "unknown",
		`{"shell_result":{"success":{"shell_id":1},"is_background":true}}`: "runs",
		`{"shell_stream":{"rejected":{}}}`:                                 "unknown",
		`{"shell_stream":{"exit":{"code":0}}}`:                             "0",
	} {
		s := NewShells()
		s.Add(Shell{ID: 1, Exec: 1})
		s.Result(1, execMessage(t, text))
		b, got := s.byID[1], "runs"
		switch {
		case b.code != nil:
			got = jsonOf(t, *b.code)
		case b.ended:
			got = "unknown"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestShellsAreBounded(t *testing.T) {
	s := NewShells()
	for i := range uint32(3) {
		s.Add(Shell{ID: i, Exec: i})
	}
	s.Result(1, execMessage(t, `{"shell_stream":{"exit":{}}}`))
	for i := uint32(3); i < maxShells+2; i++ {
		s.Add(Shell{ID: i, Exec: i})
	}
	if s.byID[1] != nil || s.byID[0] != nil || s.byID[2] == nil || s.byID[maxShells+1] == nil || len(s.order) != maxShells || len(s.byID) != maxShells || len(s.byExec) != maxShells {
		t.Errorf("the wrong shells are kept: %d, %d, %d", len(s.order), len(s.byID), len(s.byExec))
	}
	s.Add(Shell{ID: 5, Exec: 999})
	if s.Result(5, execMessage(t, `{}`)) || !s.Result(999, execMessage(t, `{}`)) || len(s.order) != maxShells {
		t.Error("a shell that is added again is kept twice")
	}
	for range 10 {
		s.Result(999, execMessage(t, `{"shell_stream":{"stdout":{"data":"`+strings.Repeat("x", 30<<10)+`"}}}`))
	}
	if b := s.byID[5]; len(b.out) > 2*shellAwait || b.printed != 300<<10 || len(b.out.last(shellAwait)) != shellAwait {
		t.Errorf("%d bytes are kept of %d", len(b.out), b.printed)
	}
}

// The end of a stream is kept whatever its pieces.
func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 30).Draw(t, "n")
		var kept tail
		var all string
		for _, s := range rapid.SliceOf(rapid.StringN(0, 20, -1)).Draw(t, "pieces") {
			kept.add(s, n)
			all += s
		}
		if len(kept) > 2*n {
			t.Fatalf("%d bytes kept", len(kept))
		}
		var whole tail
		whole.add(all, n)
		got := kept.last(n)
		if want := whole.last(n); got != want || !strings.HasSuffix(clean(all), got) {
			t.Fatalf("got %q, want %q of %q", got, want, all)
		}
		if len(all) >= n && len(clean(all)) == len(all) && len(got) <= n-4 {
			t.Fatalf("only %q of %q", got, all)
		}
	})
}
