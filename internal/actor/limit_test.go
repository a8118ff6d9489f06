package actor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// A question that nobody answers refuses its call at its time, which a crash does not put off.
func TestQuestionsHaveATimeLimit(t *testing.T) {
	simulate(t, func(t *testing.T) {
		limited := func(c *Config) {
			asks(c)
			judge := c.Judge
			c.Judge = func(s *session.State, call session.ToolCall) session.Verdict {
				v := judge(s, call)
				v.Limit = time.Hour.Milliseconds()
				return v
			}
		}
		r := newRigWith(t, limited, []tool.Tool{echo("risky"), echo("safe")}, calls("safe {}", `risky {"n":1}`), says("ok"))
		defer func() { r.stop() }()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		time.Sleep(40 * time.Minute) // simulated
		r.crash()
		time.Sleep(20*time.Minute - time.Second)
		synctest.Wait()
		item := r.state(id).Tool("call1-1-1")
		if item == nil || item.Query == nil || r.state(id).Phase() == session.PhaseIdle {
			t.Fatalf("the question is not open before its time: %+v", item)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.wants(id, `user "go"`, `assistant complete calls safe({}) calls risky({"n":1})`, `tool safe ok "safe{}"`,
			`tool risky error "The person was asked whether this may run, and nobody answered in time."`, `assistant complete "ok"`)
	})
}
