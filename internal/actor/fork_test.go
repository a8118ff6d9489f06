package actor

import (
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

func TestForkAndRewind(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, says("one"), says("two"), says("three"), says("four"))
		defer func() { r.stop() }()
		id := r.create()
		for _, text := range []string{"a", "b", "c"} {
			r.do(id, session.Prompt{Text: text})
			r.settle(id)
		}
		r.do(id, session.SetMode{Mode: session.ModeDebug})
		fork, err := r.engine.Fork(t.Context(), id, "u2", "a fork")
		if err != nil {
			t.Fatal(err)
		}
		s := r.wants(fork, `user "a"`, `assistant complete "one"`)
		if s.Parent != id || s.Name != "a fork" || s.Mode != session.ModeDebug {
			t.Errorf("fork of %q called %q in mode %q", s.Parent, s.Name, s.Mode)
		}
		r.do(fork, session.Prompt{Text: "x"})
		r.wants(fork, `user "a"`, `assistant complete "one"`, `user "x"`, `assistant complete "four"`)

		r.refused(id, session.Rewind{Item: "a1-1"}, session.NotFound)
		r.do(id, session.Rewind{Item: "u2"})
		r.wants(id, `user "a"`, `assistant complete "one"`)
		// More runs, so that what was taken away is compacted over; and a restart in between.
		for _, text := range []string{"d", "e", "f"} {
			r.do(id, session.Prompt{Text: text})
			r.settle(id)
			r.crash()
		}
		r.wants(id, `user "a"`, `assistant complete "one"`, `user "d"`, `assistant complete "done"`,
			`user "e"`, `assistant complete "done"`, `user "f"`, `assistant complete "done"`)
		r.do(id, session.Rewind{Item: "u1"})
		r.do(id, session.Prompt{Text: "g"})
		r.settle(id)
		r.do(id, session.Prompt{Text: "h"})
		r.settle(id)
		r.crash()
		r.wants(id, `user "g"`, `assistant complete "done"`, `user "h"`, `assistant complete "done"`)
		if _, err := r.engine.Fork(t.Context(), id, "nowhere", ""); session.AsError(err).Kind != session.NotFound {
			t.Errorf("fork before a message that is not there: %v", err)
		}
	})
}
