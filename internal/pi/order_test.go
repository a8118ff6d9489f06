package pi_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/piwire"
)

// The table of who is told what, in which order (SPEC 3.5): a is the one who asks, b is
// attached as well, c is only connected.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(r *rig, a *peer)
		a, b, c []string
	}{
		{
			"create", func(_ *rig, a *peer) { a.ask("1", &piwire.Create{}) },
			[]string{"session s2 idle", "answer 1 create s2 idle", "server 3"},
			[]string{"server 3"},
			[]string{"server 3"},
		},
		{
			"attach again", func(_ *rig, a *peer) { a.ask("1", &piwire.Attach{SessionID: "s1"}) },
			[]string{"session s1 idle", "answer 1 attach s1 idle", "server 3"},
			[]string{"server 3", "session s1 idle"},
			[]string{"server 3"},
		},
		{
			"detach", func(_ *rig, a *peer) { a.ask("1", &piwire.Detach{SessionID: "s1"}) },
			[]string{"answer 1 detach s1", "server 3"},
			[]string{"server 3", "session s1 idle"},
			[]string{"server 3"},
		},
		{
			"detach from an unknown session", func(_ *rig, a *peer) { a.ask("1", &piwire.Detach{SessionID: "nope"}) },
			[]string{"answer 1 detach nope"},
			nil, nil,
		},
		{
			"disconnect", func(_ *rig, a *peer) { a.close() },
			nil,
			[]string{"server 3"},
			[]string{"server 3"},
		},
		{
			"set_model", func(_ *rig, a *peer) {
				a.ask("1", &piwire.SetModel{SessionID: "s1", Model: piwire.ModelRef{Provider: "test", ID: "other"}})
			},
			[]string{"session s1 idle", "answer 1 set_model s1 idle"},
			[]string{"session s1 idle"},
			nil,
		},
		{
			"set_thinking", func(_ *rig, a *peer) {
				a.ask("1", &piwire.SetThinking{SessionID: "s1", ThinkingLevel: piwire.ThinkingHigh})
			},
			[]string{"session s1 idle", "answer 1 set_thinking s1 idle"},
			[]string{"session s1 idle"},
			nil,
		},
		{
			"set_thinking to what it is", func(_ *rig, a *peer) {
				a.ask("1", &piwire.SetThinking{SessionID: "s1", ThinkingLevel: piwire.ThinkingOff})
			},
			[]string{"answer 1 set_thinking s1 idle"},
			nil, nil,
		},
		{
			"list", func(_ *rig, a *peer) { a.ask("1", &piwire.List{}) },
			[]string{"answer 1 list of 1"},
			nil, nil,
		},
		{
			"prompt", func(_ *rig, a *peer) { a.ask("1", &piwire.Prompt{SessionID: "s1"}) },
			[]string{"session s1 turn", "session s1 idle", "answer 1 prompt s1 idle"},
			[]string{"session s1 idle", "session s1 turn"},
			nil,
		},
		{
			"delete", func(r *rig, _ *peer) { r.delete("s1") },
			[]string{"removed s1", "server 3"},
			[]string{"removed s1", "server 3"},
			[]string{"removed s1", "server 3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id := r.create()
				other := r.ready()
				a, b := r.attached(id), r.attached(id)
				a.take()
				other.take()
				goOn := make(chan struct{})
				r.model.then(until(goOn, "a", "b"))
				c.do(r, a)
				synctest.Wait()
				close(goOn)
				if got := distinct(tell(a.take())); !slices.Equal(got, append([]string{}, c.a...)) {
					t.Errorf("who asked got %q, want %q", got, c.a)
				}
				for who, p := range map[string]struct {
					got  *peer
					want []string
				}{"attached": {b, c.b}, "connected": {other, c.c}} {
					got := distinct(tell(p.got.take()))
					slices.Sort(got)
					if !slices.Equal(got, append([]string{}, p.want...)) {
						t.Errorf("who is %s got %q, want %q", who, got, p.want)
					}
				}
			})
		})
	}
}

// Two sessions that are made at once are told one by one.
func TestServerRevisionsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p, q := r.ready(), r.ready()
		p.ask("1", &piwire.Create{})
		q.ask("2", &piwire.Create{})
		var revisions []string
		for _, line := range tell(p.take()) {
			if line == "server 1" || line == "server 2" {
				revisions = append(revisions, line)
			}
		}
		if !slices.Equal(revisions, []string{"server 1", "server 2"}) {
			t.Errorf("got %q", revisions)
		}
	})
}

// A burst of changes is told at most a few times, and the last one always.
func TestManyChangesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.ready()
		for range 100 {
			r.server.Changed()
		}
		id := r.create()
		r.server.Changed()
		got := p.take()
		last := got[len(got)-1].(*piwire.ServerSnapshotEvent).Snapshot
		if len(last.Sessions) != 1 || last.Sessions[0].ID != id {
			t.Errorf("the last snapshot has sessions %v", last.Sessions)
		}
	})
}

// The revision of a session never falls, not even over a restart, while it may of a server.
func TestRevisionsOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		p := r.attached(id)
		p.ask("1", &piwire.Prompt{SessionID: id, Text: "hi"})
		before := answerOf(t, p.take(), "1").Result.(*piwire.SessionResult).Session
		r.restart()
		q := r.ready()
		q.ask("1", &piwire.Attach{SessionID: id})
		after := answerOf(t, q.take(), "1").Result.(*piwire.SessionResult).Session
		if after.Revision < before.Revision || before.Revision == 0 || show(after.Transcript) != show(before.Transcript) {
			t.Errorf("revision %d, then %d\n%s%s", before.Revision, after.Revision, show(before.Transcript), show(after.Transcript))
		}
	})
}

// Within a connection the revisions that it is told never fall.
func TestRevisionsNeverFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(calls(`echo {"a":1}`, `echo {"b":2}`), says("x", "y"))
		id := r.create()
		p := r.attached(id)
		p.ask("1", &piwire.Prompt{SessionID: id, Text: "hi"})
		p.ask("2", &piwire.Steer{SessionID: id, Text: "there"})
		time.Sleep(time.Second)
		revision := int64(0)
		for _, m := range p.take() {
			if s, ok := m.(*piwire.SessionSnapshotEvent); ok {
				if s.Snapshot.Revision < revision {
					t.Errorf("revision %d after %d", s.Snapshot.Revision, revision)
				}
				revision = s.Snapshot.Revision
			}
		}
		if revision == 0 {
			t.Error("no snapshot")
		}
	})
}
