package actor

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

func echo(name string) fakeTool {
	return fakeTool{name: name, repeatable: true, run: func(_ context.Context, c tool.Call, _ func(tool.Progress)) tool.Result {
		return tool.Result{Text: name + string(c.Input)}
	}}
}

func TestPrompt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, says("Hel", "lo"))
		defer r.stop()
		id := r.create()
		receipt := r.do(id, session.Prompt{ID: "p1", Text: "hi"})
		if receipt.Run != 1 || receipt.Item != "u1" {
			t.Errorf("receipt %+v", receipt)
		}
		r.wants(id, `user "hi"`, `assistant complete "Hello"`)
		again := r.do(id, session.Prompt{ID: "p1", Text: "hi"})
		if again.Run != 1 || again.Item != "u1" || r.model.count() != 1 {
			t.Errorf("the repeated prompt gave %+v after %d requests", again, r.model.count())
		}
		r.do(id, session.Prompt{Text: "more"})
		r.wants(id, `user "hi"`, `assistant complete "Hello"`, `user "more"`, `assistant complete "done"`)
	})
}

func TestTools(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		note := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		}
		slow := fakeTool{name: "slow", run: func(ctx context.Context, _ tool.Call, progress func(tool.Progress)) tool.Result {
			progress(tool.Progress{Text: "working"})
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
			note("slow")
			return tool.Result{Text: "slow result", Details: json.RawMessage(`{"a":1}`)}
		}}
		fast := fakeTool{name: "fast", run: func(context.Context, tool.Call, func(tool.Progress)) tool.Result {
			note("fast")
			return tool.Result{Text: "fast result", IsError: true}
		}}
		r := newRig(t, []tool.Tool{slow, fast}, calls(`slow {"n":1}`, `fast`, `none {}`, `fast {"broken`), says("ok"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		if got := r.state(id).Tool("call1-1-0"); got.Output != "working" || got.Status != session.Streaming {
			t.Errorf("the running tool shows %q", got.Output)
		}
		s := r.settle(id)
		got := tell(s)
		want := `user "go"
assistant complete calls slow({"n":1}) calls fast() calls none({}) calls fast({"broken)
tool slow ok "slow result"
tool fast error "fast result"
tool none error "There is no tool \"none\". The tools are: fast, slow."
tool fast error "The arguments are not valid JSON (unexpected end of JSON input), so the tool was not run. Call it again with valid JSON."
assistant complete "ok"
`
		if got != want {
			t.Errorf("transcript:\n%swant:\n%s", got, want)
		}
		if strings.Join(order, " ") != "fast slow" {
			t.Errorf("tools did not run side by side: %v", order)
		}
		r.replays(s)
		if n := len(r.model.asked(1).Items); n != 6 {
			t.Errorf("the second request has %d items, want 6", n)
		}
	})
}

func TestSteer(t *testing.T) {
	simulate(t, func(t *testing.T) {
		wait := fakeTool{name: "wait", run: func(context.Context, tool.Call, func(tool.Progress)) tool.Result {
			time.Sleep(time.Second)
			return tool.Result{Text: "waited"}
		}}
		r := newRig(t, []tool.Tool{wait}, calls("wait"), says("one"), says("two"))
		defer r.stop()
		id := r.create()
		r.refused(id, session.Steer{Text: "too early"}, session.Busy)
		r.do(id, session.Prompt{Text: "go"})
		r.do(id, session.Steer{ID: "s", Text: "first"})
		r.do(id, session.Steer{ID: "s", Text: "first"})
		r.do(id, session.Steer{Text: "second"})
		r.refused(id, session.Prompt{Text: "no"}, session.Busy)
		r.refused(id, session.SetThinking{Thinking: session.ThinkingHigh}, session.Busy)
		if q := r.state(id).Queue; len(q) != 2 || q[0].ID != "u2" {
			t.Errorf("queue %v", q)
		}
		r.wants(id, `user "go"`, `assistant complete calls wait()`, `tool wait ok "waited"`,
			`user "first"`, `assistant complete "one"`, `user "second"`, `assistant complete "two"`)
		r.do(id, session.SetThinking{Thinking: session.ThinkingHigh})
		r.refused(id, session.SetThinking{Thinking: session.ThinkingLow}, session.Invalid)
		r.refused(id, session.SetModel{Model: session.ModelRef{Provider: "x", ID: "y"}}, session.Invalid)
	})
}

// A run that fails keeps the steers that it has acknowledged, and the next one answers them.
func TestSteersOfAFailedRun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		late := func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error {
			time.Sleep(time.Second)
			return breaks(provider.FaultRequest, "")(ctx, req, yield)
		}
		r := newRig(t, nil, late, says("fine"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		r.do(id, session.Steer{Text: "first"})
		r.do(id, session.Steer{Text: "second"})
		if s := r.settle(id); s.LastOutcome != session.RunFailed || len(s.Queue) != 0 {
			t.Fatalf("outcome %v, queue %v", s.LastOutcome, s.Queue)
		}
		r.do(id, session.Resume{})
		r.wants(id, `user "go"`, `assistant failed error "it broke"`, `user "first"`, `user "second"`, `assistant complete "fine"`)
	})
}

func TestAbort(t *testing.T) {
	stuck := func(stops bool) fakeTool {
		return fakeTool{name: "stuck", run: func(ctx context.Context, _ tool.Call, progress func(tool.Progress)) tool.Result {
			progress(tool.Progress{Text: "some"})
			<-ctx.Done()
			if !stops {
				time.Sleep(time.Minute)
			}
			return tool.Result{Text: "some\nAborted.", IsError: true}
		}}
	}
	ended := `user "go"` + "\n" + `assistant complete calls stuck()` + "\n"
	for name, c := range map[string]struct {
		answer answer
		tool   fakeTool
		want   string
	}{
		"an answer":               {hangs("part"), stuck(true), `user "go"` + "\n" + `assistant aborted "part"`},
		"silence":                 {hangs(""), stuck(true), `user "go"` + "\n" + `assistant aborted`},
		"a pause before a retry":  {breaks(provider.FaultOverload, ""), stuck(true), `user "go"` + "\n" + `assistant aborted`},
		"a tool":                  {calls("stuck"), stuck(true), ended + `tool stuck error "some\nAborted."`},
		"a tool that never stops": {calls("stuck"), stuck(false), ended + `tool stuck error "Aborted. The tool did not stop in time and may still be running."`},
		"an answer with a whole call": {func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error {
			yield(provider.Part{Kind: provider.CallStart, Name: "stuck"})
			yield(provider.Part{Kind: provider.CallEnd})
			return hangs("")(ctx, req, yield)
		}, stuck(true), `user "go"` + "\n" + `assistant aborted calls stuck()` + "\n" + `tool stuck error "Aborted before the tool was run."`},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t, []tool.Tool{c.tool}, c.answer)
				defer r.stop()
				id := r.create()
				r.refused(id, session.Abort{}, session.Busy)
				r.do(id, session.Prompt{Text: "go"})
				synctest.Wait()
				r.do(id, session.Steer{Text: "dropped"})
				began := time.Now()
				r.do(id, session.Abort{})
				s := r.wants(id, c.want)
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("the abort took %v", took)
				}
				if s.LastOutcome != session.RunAborted || len(s.Queue) != 0 {
					t.Errorf("outcome %v, queue %v", s.LastOutcome, s.Queue)
				}
				// Once idle is visible, a prompt is accepted (trap 47), and the history is whole.
				r.do(id, session.Prompt{Text: "again"})
				if s := r.settle(id); s.LastOutcome != session.RunCompleted {
					t.Errorf("the next run ended %v", s.LastOutcome)
				}
				if !strings.HasPrefix(name, "a tool that") {
					return
				}
				time.Sleep(2 * time.Minute) // simulated: let the stuck tool end
			})
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		want    []string
		outcome session.Outcome
		after   time.Duration
	}{
		"nothing shown is repeated": {
			[]answer{breaks(provider.FaultRateLimit, ""), says("ok")},
			[]string{`user "go"`, `assistant complete "ok"`},
			session.RunCompleted, time.Second,
		},
		"shown text is continued": {
			[]answer{breaks(provider.FaultNetwork, "half "), says("whole")},
			[]string{`user "go"`, `assistant complete "half whole"`},
			session.RunCompleted, time.Second,
		},
		"a call that had begun is answered": {
			[]answer{func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
				yield(provider.Part{Kind: provider.CallStart, Key: 0, Name: "echo"})
				yield(provider.Part{Kind: provider.CallDelta, Key: 0, Text: "{}"})
				yield(provider.Part{Kind: provider.CallEnd, Key: 0})
				yield(provider.Part{Kind: provider.CallStart, Key: 1, Name: "echo"})
				yield(provider.Part{Kind: provider.CallDelta, Key: 1, Text: `{"a`})
				return provider.Errorf(provider.FaultNetwork, "cut")
			}, says("ok")},
			[]string{
				`user "go"`, `assistant complete calls echo({}) calls echo({"a)`, `tool echo ok "echo{}"`,
				`tool echo error "The connection to the model broke before the arguments were complete, so the tool was not run. Call it again."`,
				`assistant complete "ok"`,
			},
			session.RunCompleted, 0,
		},
		"what no retry mends ends the run": {
			[]answer{breaks(provider.FaultAuth, "so far")},
			[]string{`user "go"`, `assistant failed "so far" error "it broke"`},
			session.RunFailed, 0,
		},
		"attempts are limited": {
			[]answer{breaks(provider.FaultNetwork, ""), breaks(provider.FaultNetwork, ""), breaks(provider.FaultNetwork, ""), breaks(provider.FaultNetwork, ""), breaks(provider.FaultNetwork, "")},
			[]string{`user "go"`, `assistant failed error "it broke"`},
			session.RunFailed, 15 * time.Second,
		},
		"an end without a finish is a break": {
			[]answer{func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
				yield(provider.Part{Kind: provider.TextDelta, Text: "a"})
				return nil
			}, says("b")},
			[]string{`user "go"`, `assistant complete "ab"`},
			session.RunCompleted, time.Second,
		},
		"a provider that panics": {
			[]answer{func(context.Context, *provider.Request, func(provider.Part) bool) error { panic("boom") }},
			[]string{`user "go"`, `assistant failed error "the provider's answer could not be read: internal error (boom)"`},
			session.RunFailed, 0,
		},
		"calls of an answer that was too long are not run": {
			[]answer{func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
				yield(provider.Part{Kind: provider.CallStart, Name: "echo"})
				yield(provider.Part{Kind: provider.CallDelta, Text: "{}"})
				yield(provider.Part{Kind: provider.Finish, Stop: session.StopLength})
				return nil
			}, says("ok")},
			[]string{
				`user "go"`, `assistant complete calls echo({})`,
				`tool echo error "The answer reached the limit of its length, so the tool was not run. Call it again with shorter arguments, or in several steps."`,
				`assistant complete "ok"`,
			},
			session.RunCompleted, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t, []tool.Tool{echo("echo")}, c.answers...)
				defer r.stop()
				id := r.create()
				began := time.Now()
				r.do(id, session.Prompt{Text: "go"})
				s := r.wants(id, c.want...)
				if s.LastOutcome != c.outcome {
					t.Errorf("outcome %v, want %v", s.LastOutcome, c.outcome)
				}
				if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
					t.Errorf("took %v, want %v", took, c.after)
				}
			})
		})
	}
}

func TestContinuationTellsTheModel(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, breaks(provider.FaultNetwork, "half "), says("whole"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		r.settle(id)
		req := r.model.asked(1)
		last, ok := req.Items[len(req.Items)-1].(*session.Assistant)
		if !req.Continue || !ok || session.BlockText(last.Blocks[0]) != "half " {
			t.Errorf("the second request: continue %v, last item %+v", req.Continue, req.Items[len(req.Items)-1])
		}
	})
}

func TestToolPanicEndsTheCallOnly(t *testing.T) {
	simulate(t, func(t *testing.T) {
		boom := fakeTool{name: "boom", run: func(context.Context, tool.Call, func(tool.Progress)) tool.Result { panic("boom") }}
		r := newRig(t, []tool.Tool{boom}, calls("boom"), says("ok"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		r.wants(id, `user "go"`, `assistant complete calls boom()`, `tool boom error "The tool failed: internal error."`, `assistant complete "ok"`)
	})
}

// A fault in one session ends its run and nothing else.
func TestPanicInOneSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, hangs("text"), says("fine"))
		defer r.stop()
		bad, good := r.create(), r.create()
		r.do(bad, session.Prompt{Text: "go"})
		synctest.Wait()
		a, err := r.engine.acquire(t.Context(), bad)
		if err != nil {
			t.Fatal(err)
		}
		a.mailbox <- panics{}
		r.engine.release(a)
		synctest.Wait()
		r.wantLoad(0, 0) // it rests, and the other one is not loaded yet
		r.do(good, session.Prompt{Text: "go"})
		r.wants(good, `user "go"`, `assistant complete "fine"`)
		time.Sleep(3 * time.Second) // simulated
		s := r.wants(bad, `user "go"`, `assistant failed "text" error "internal error"`)
		if s.LastOutcome != session.RunFailed || s.LastError != "internal error" {
			t.Errorf("the run ended %v %q", s.LastOutcome, s.LastError)
		}
		r.do(bad, session.Prompt{Text: "again"})
		if s := r.settle(bad); s.LastOutcome != session.RunCompleted {
			t.Errorf("the next run ended %v", s.LastOutcome)
		}
	})
}

type panics struct{}

func (panics) handle(*actor) { panic("test") }

func TestFullDisk(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		id := r.create()
		r.log.Fail(1, memlog.Full)
		r.refused(id, session.Prompt{ID: "p", Text: "go"}, session.Unavailable)
		if s := r.state(id); s.Seq != 1 {
			t.Errorf("seq %d after a refused prompt", s.Seq)
		}
		r.do(id, session.Prompt{ID: "p", Text: "go"})
		r.wants(id, `user "go"`, `assistant complete "done"`)
	})
}

func TestFullDiskInTheMiddleOfARun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t, nil, func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error {
			yield(provider.Part{Kind: provider.TextDelta, Text: "a"})
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
			return says("b")(ctx, req, yield)
		}, says("c"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		r.log.Fail(1, memlog.Full)
		close(release)
		synctest.Wait()
		// Nobody asks for the session, and yet it is taken up again.
		time.Sleep(10 * time.Second) // simulated
		r.wants(id, `user "go"`, `assistant complete "ac"`)
	})
}

func TestIdleSessionsLeaveMemory(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		want := tell(r.settle(id))
		sub, err := r.engine.Watch(t.Context(), id, nil)
		if err != nil {
			t.Fatal(err)
		}
		loaded := func() int {
			sessions, _ := r.engine.Load()
			return sessions
		}
		time.Sleep(5 * time.Minute) // simulated
		if loaded() != 1 {
			t.Error("a watched session left memory")
		}
		sub.Close()
		sub.Close()
		time.Sleep(time.Minute) // simulated
		if loaded() != 0 {
			t.Error("an idle session stays in memory")
		}
		if got := tell(r.state(id)); got != want {
			t.Errorf("came back as %s", got)
		}
	})
}

func TestLoad(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, hangs("x"), hangs("y"))
		defer r.stop()
		running, idle := r.create(), r.create()
		r.wantLoad(0, 0)
		r.do(running, session.Prompt{Text: "go"})
		r.state(idle)
		r.wantLoad(2, 1)
		r.stop()
		r.start() // takes the run up
		r.wantLoad(1, 1)
		r.do(running, session.Abort{})
		r.settle(running)
		r.wantLoad(1, 0)
	})
}

func (r *rig) wantLoad(sessions, runs int) {
	r.t.Helper()
	if s, n := r.engine.Load(); s != sessions || n != runs {
		r.t.Errorf("%d sessions are loaded and %d run, want %d and %d", s, n, sessions, runs)
	}
}

func TestDelete(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, hangs("x"))
		defer r.stop()
		var changes []Change
		defer r.engine.Observe(func(c Change) { changes = append(changes, c) })()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		if err := r.engine.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := r.engine.Delete(t.Context(), id); session.AsError(err).Kind != session.NotFound {
			t.Errorf("second delete: %v", err)
		}
		r.refused(id, session.Prompt{Text: "go"}, session.NotFound)
		r.wantLoad(0, 0)
		if len(changes) < 2 || changes[0].Kind != SessionCreated || changes[len(changes)-1].Kind != SessionRemoved {
			t.Errorf("changes %v", changes)
		}
	})
}

func TestSettledRunsAreCompacted(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, nil, says("a", "b"), says("c"), says("d"))
		defer r.stop()
		id := r.create()
		var ends []session.Seq
		for range 3 {
			r.do(id, session.Prompt{Text: "go"})
			ends = append(ends, r.settle(id).Seq)
		}
		snapshot, err := r.log.Load(t.Context(), id)
		if err != nil || snapshot.Head.Seq != ends[1] || len(snapshot.Items) != 4 {
			t.Errorf("snapshot through %d with %d items, %v; want %d and 4", snapshot.Head.Seq, len(snapshot.Items), err, ends[1])
		}
		r.wants(id, `user "go"`, `assistant complete "ab"`, `user "go"`, `assistant complete "c"`, `user "go"`, `assistant complete "d"`)
	})
}

// A model that repeats a call that fails is stopped: first the call is not run any more, then
// the run ends.
func TestRepeatedFailures(t *testing.T) {
	simulate(t, func(t *testing.T) {
		ran := 0
		fails := fakeTool{name: "fails", run: func(context.Context, tool.Call, func(tool.Progress)) tool.Result {
			ran++
			return tool.Failure("no")
		}}
		var answers []answer
		for range 50 {
			answers = append(answers, calls(`fails {"a":1}`))
		}
		r := newRig(t, []tool.Tool{fails}, answers...)
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		s := r.settle(id)
		if ran != session.MaxRepeats || r.model.count() != session.MaxRepeats+session.MaxRefused || s.LastOutcome != session.RunFailed {
			t.Errorf("it ran %d times in %d passes, and the run ended %v %q", ran, r.model.count(), s.LastOutcome, s.LastError)
		}
		r.do(id, session.Prompt{Text: "try again"})
		synctest.Wait()
		if ran != session.MaxRepeats+1 && ran != 2*session.MaxRepeats {
			t.Errorf("after a new prompt it ran %d times in all", ran)
		}
		r.settle(id)
	})
}

// A server of tools says of some that running them twice does no harm. They run again after a crash, though
// the server of tools has to be asked anew, and the others do not.
func TestToolsOfServersAfterACrash(t *testing.T) {
	for name, repeatable := range map[string]bool{"repeatable": true, "not repeatable": false} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				runs := 0
				remote := fakeTool{name: "remote", repeatable: repeatable, run: func(ctx context.Context, _ tool.Call, _ func(tool.Progress)) tool.Result {
					if runs++; runs == 1 {
						<-ctx.Done()
					}
					return tool.Result{Text: "found"}
				}}
				r := newRigWith(t, func(c *Config) {
					c.MoreTools = func(context.Context, *session.State) []tool.Tool {
						time.Sleep(time.Second)
						return []tool.Tool{remote}
					}
				}, nil, calls("remote"), says("fine"))
				defer r.stop()
				id := r.create()
				r.do(id, session.Prompt{Text: "go"})
				time.Sleep(10 * time.Second)
				r.crash()
				want, times := `tool remote ok "found"`, 2
				if !repeatable {
					want, times = `tool remote error "Interrupted: the server was restarted while the tool ran, so its outcome is unknown. Check before you run it again."`, 1
				}
				r.wants(id, `user "go"`, `assistant complete calls remote()`, want, `assistant complete "fine"`)
				if runs != times {
					t.Errorf("it ran %d times, want %d", runs, times)
				}
			})
		})
	}
}
