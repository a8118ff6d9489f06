package control_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// reads returns the view of somebody who comes now.
func reads(r *controltest.Rig, id string) *client.View {
	v := new(client.View)
	r.Follow(id, v, func(v *client.View) bool { return v.Session != nil })
	return v
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		v := reads(r, id)
		if _, answer := curl(t, r, "SetMode", `{"sessionId":"`+id+`","mode":"odd"}`); answer["code"] != "invalid_argument" {
			t.Errorf("an unknown mode: %v", answer)
		}
		if err := r.Client.SetMode(t.Context(), id, "plan"); err != nil {
			t.Fatal(err)
		}
		r.Follow(id, v, func(v *client.View) bool { return len(v.Items) > 0 })
		if v.Session.Mode != "plan" || v.Items[0].GetUser().GetNote() != "mode" {
			t.Errorf("session %v with %v", v.Session, v.Items)
		}
	})
}

func TestRewindAndFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Says("one"), controltest.Says("two"), controltest.Says("three"))
		id := r.Create()
		r.Prompt(id, "first")
		r.Idle(id)
		second := r.Prompt(id, "second").ItemId
		r.Follow(id, new(client.View), func(v *client.View) bool { return v.Session.GetLastRun().GetId() == 2 })
		v := reads(r, id)

		forks := make(map[string]*roostv1.ForkResponse)
		for _, before := range []string{"", second} {
			f, err := r.Client.Fork(t.Context(), id, before, "copy")
			if err != nil {
				t.Fatal(err)
			}
			forks[before] = f
		}
		if s := forks[""].Session; s.ItemCount != 4 || s.Parent != id || s.Name != "copy" || forks[""].Position.GetSeq() == 0 {
			t.Errorf("a fork of all: %v", forks[""])
		}
		if got := reads(r, forks[second].Session.Id); len(got.Items) != 2 || got.Session.ItemCount != 2 {
			t.Errorf("a fork of the beginning: %v", got.Items)
		}
		for _, item := range []string{"a1-1", "nope"} {
			if _, err := r.Client.Fork(t.Context(), id, item, ""); client.KindOf(err) != client.NotFound {
				t.Errorf("a fork before %s: %v", item, err)
			}
			if err := r.Client.Rewind(t.Context(), id, item); client.KindOf(err) != client.NotFound {
				t.Errorf("a rewind to %s: %v", item, err)
			}
		}
		if err := r.Client.Rewind(t.Context(), id, second); err != nil {
			t.Fatal(err)
		}
		r.Follow(id, v, func(v *client.View) bool { return v.Session.ItemCount == 2 })
		if diff := cmp.Diff(reads(r, id).Items, v.Items, protocmp.Transform()); diff != "" {
			t.Errorf("after the rewind (-read +watched):\n%s", diff)
		}
		r.Prompt(forks[""].Session.Id, "on") // the copy is a session of its own
		r.Idle(forks[""].Session.Id)
	})
}

func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := controltest.Start(t, nil, controltest.Says(strings.Repeat("long ", 100)), controltest.Says("two"), controltest.Steps(step, "A summary."))
		id := r.Create()
		if _, err := r.Client.Compact(t.Context(), id); client.KindOf(err) != client.Invalid {
			t.Errorf("nothing to compact: %v", err)
		}
		r.Prompt(id, "first")
		v := r.Idle(id)
		r.Prompt(id, "second")
		r.Follow(id, v, func(v *client.View) bool { return v.Session.LastRun.GetId() == 2 })
		res, err := r.Client.Compact(t.Context(), id)
		if err != nil || res.Run != 3 {
			t.Fatalf("got %v, %v", res, err)
		}
		compacting := false
		r.Follow(id, v, func(v *client.View) bool {
			if v.Session.Run.GetCompacting() {
				compacting = true
				step <- struct{}{}
			}
			return v.Session.LastRun.GetId() == 3
		})
		if !compacting || v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_COMPLETED || len(v.Items) != 4 {
			t.Errorf("session %v, seen at work: %v", v.Session, compacting)
		}
	})
}
