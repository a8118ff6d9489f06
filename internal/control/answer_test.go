package control_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// asked starts a run and returns the id of the call that waits for an answer.
func asked(r *controltest.Rig, id string) string {
	r.Prompt(id, "go")
	v := new(client.View)
	r.Follow(id, v, func(v *client.View) bool { return len(v.Queries()) > 0 })
	return v.Queries()[0].Id
}

// outputs returns what the tools of a session have put out.
func outputs(v *client.View) []string {
	var list []string
	for _, i := range v.Items {
		if t := i.GetTool(); t != nil {
			list = append(list, t.Output)
		}
	}
	return list
}

func TestTheFirstAnswerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Calls(`echo {"risky":1}`))
		id := r.Create()
		call := asked(r, id)
		refused := func(body, kind string) {
			t.Helper()
			if _, answer := curl(t, r, "Answer", body); answer["code"] != kind {
				t.Errorf("Answer %s: %v", body, answer)
			}
		}
		refused(`{"sessionId":"`+id+`","itemId":"nope","allow":true}`, "not_found")
		refused(`{"sessionId":"nope","itemId":"`+call+`","allow":true}`, "not_found")
		refused(`{"sessionId":"`+id+`","itemId":"`+call+`","allow":true,"scope":9}`, "invalid_argument")
		status, answer := curl(t, r, "Answer", `{"sessionId":"`+id+`","itemId":"`+call+`","reason":"Not today."}`)
		if status != http.StatusOK || answer["run"] != 1.0 || answer["position"] == nil {
			t.Errorf("Answer: %d %v", status, answer)
		}
		refused(`{"sessionId":"`+id+`","itemId":"`+call+`","allow":true}`, "not_found")
		if got := outputs(r.Idle(id)); len(got) != 1 || got[0] != "The person did not allow it. Not today." {
			t.Errorf("the tool says %q", got)
		}
	})
}

// A question waits while the server is away, and another client than the first answers it.
func TestAQuestionSurvivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil,
			controltest.Calls(`echo {"risky":1}`, `echo {"risky":2}`), controltest.Calls(`echo {"risky":3}`))
		id := r.Create()
		call := asked(r, id)
		r.Crash()
		other := r.NewClient(client.Options{})
		v := new(client.View)
		r.Follow(id, v, func(v *client.View) bool { return v.Session != nil })
		open := v.Queries()
		if len(open) != 2 || open[0].Id != call || open[0].GetTool().Query.Reason != "it is risky" || open[0].GetTool().Query.Grants[0] != controltest.Grant {
			t.Fatalf("open questions: %v", open)
		}
		for i, scope := range []roostv1.Scope{roostv1.Scope_SCOPE_ONCE, roostv1.Scope_SCOPE_SESSION} {
			_, err := other.Answer(t.Context(), &roostv1.AnswerRequest{SessionId: id, ItemId: open[i].Id, Allow: true, Scope: scope})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := r.Client.Answer(t.Context(), &roostv1.AnswerRequest{SessionId: id, ItemId: call})
		if client.KindOf(err) != client.NotFound {
			t.Errorf("a late answer: %v", err)
		}
		// The third call is like what was allowed for the session, so nobody is asked.
		if got := outputs(r.Idle(id)); len(got) != 3 || got[2] != "{\"risky\":3}\n{\"risky\":3}" {
			t.Errorf("the tools say %q", got)
		}
	})
}
