package actor

import (
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// After a restart the open question is answered, and the one after it is asked and answered,
// over one more restart.
func TestNextQuestionAfterACrash(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRigWith(t, asks, []tool.Tool{echo("risky")}, calls(`risky {"n":1}`), calls(`risky {"n":2}`), says("ok"))
		defer func() { r.stop() }()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		for _, call := range []session.CallID{"call1-1-0", "call1-2-0"} {
			r.crash()
			synctest.Wait()
			if item := r.state(id).Tool(call); item == nil || item.Query == nil {
				t.Fatalf("nobody is asked about %s: %+v", call, item)
			}
			r.do(id, session.Answer{Call: call, Allow: true})
			synctest.Wait()
		}
		r.wants(id, `user "go"`, `assistant complete calls risky({"n":1})`, `tool risky ok "risky{\"n\":1}"`,
			`assistant complete calls risky({"n":2})`, `tool risky ok "risky{\"n\":2}"`, `assistant complete "ok"`)
	})
}
