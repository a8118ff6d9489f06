package pi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// step is something that a client does in a random run.
type step struct {
	who     int
	what    string
	session string
	pause   time.Duration // after it
	chunk   int           // a new pace
	rest    time.Duration
}

// play is one random run of some clients. The bubble needs a *testing.T; what fails inside is
// reported through rapid's afterwards.
type play struct {
	clients  int
	answers  []answer
	steps    []step
	accepted bool

	mu      sync.Mutex
	failure string
}

func drawPlay(t *rapid.T) *play {
	w := &play{clients: rapid.IntRange(1, 4).Draw(t, "clients"), accepted: rapid.Bool().Draw(t, "accepted")}
	for range rapid.IntRange(0, 10).Draw(t, "answers") {
		w.answers = append(w.answers, drawAnswer(t))
	}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		w.steps = append(w.steps, step{
			who: rapid.IntRange(0, w.clients-1).Draw(t, "who"),
			what: rapid.SampledFrom([]string{
				"create", "attach", "attach", "attach", "detach", "prompt", "prompt", "prompt", "prompt", "steer", "steer", "abort",
				"model", "thinking", "list", "pace", "pace", "quiet", "quiet", "delete",
			}).Draw(t, "what"),
			session: fmt.Sprintf("s%d", rapid.IntRange(1, 3).Draw(t, "session")),
			pause:   time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond,
			chunk:   rapid.SampledFrom([]int{1, 7, 100, 4096}).Draw(t, "chunk"),
			rest:    time.Duration(rapid.IntRange(0, 50).Draw(t, "rest")) * time.Millisecond,
		})
	}
	return w
}

func drawAnswer(t *rapid.T) answer {
	rest := time.Duration(rapid.IntRange(0, 100).Draw(t, "delay")) * time.Millisecond
	switch rapid.SampledFrom([]string{"text", "text", "call", "broken", "refused", "hang", "much"}).Draw(t, "answer") {
	case "call":
		input := rapid.SampledFrom([]string{"{}", `{"a":[1,2]}`, "", `"text"`, "12", "{bad"}).Draw(t, "input")
		return slowly(rest, calls("echo "+input, "none "+input))
	case "broken":
		return slowly(rest, breaks(provider.FaultNetwork))
	case "refused":
		return slowly(rest, breaks(provider.FaultRequest))
	case "hang":
		return func(ctx context.Context, yield func(provider.Part) bool) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return hangs("wait")(ctx, yield)
		}
	case "much":
		return streams(1<<20, 5000, 0)
	}
	text := strings.Split(rapid.StringN(0, 8, 40).Draw(t, "text"), "")
	return slowly(rest, func(ctx context.Context, yield func(provider.Part) bool) error {
		yield(provider.Part{Kind: provider.ReasoningDelta, Text: "hm"})
		return says(text...)(ctx, yield)
	})
}

// slowly rests before each part.
func slowly(rest time.Duration, a answer) answer {
	return func(ctx context.Context, yield func(provider.Part) bool) error {
		return a(ctx, func(p provider.Part) bool {
			time.Sleep(rest) // simulated
			return yield(p)
		})
	}
}

// Whatever clients do, at whatever pace they read: none ever sees a violation of the
// protocol, every request is answered, and when all is quiet every attached client shows
// what the session is.
func TestRandomClients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawPlay(rt)
		synctest.Test(t, w.run)
		if w.failure != "" {
			rt.Fatal(w.failure)
		}
	})
}

func (w *play) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

func (w *play) run(t *testing.T) {
	r := newRig(t, func(o *pi.Options) { o.PromptAccepted = w.accepted })
	r.model.then(w.answers...)
	clients, paces := make([]*client.Client, w.clients), make([]*slowConn, w.clients)
	for i := range clients {
		clients[i], paces[i] = r.slow(nil)
	}
	r.create()
	var open sync.WaitGroup
	quiet := func() {
		for _, p := range paces {
			p.pace(0, 0)
		}
		open.Wait()
		settle()
		w.check(r, clients)
	}
	for _, s := range w.steps {
		switch s.what {
		case "quiet":
			quiet()
		case "pace":
			paces[s.who].pace(s.chunk, s.rest)
		case "delete":
			if s.chunk == 1 { // seldom
				_ = r.engine.Delete(t.Context(), session.ID(s.session))
			}
		default:
			open.Go(func() { w.ask(t.Context(), clients[s.who], s) })
		}
		time.Sleep(s.pause) // simulated
	}
	quiet()
}

// ask has a client send a command. It may be refused, and that is all.
func (w *play) ask(ctx context.Context, c *client.Client, s step) {
	cmd := map[string]piwire.Command{
		"create":   &piwire.Create{},
		"attach":   &piwire.Attach{SessionID: s.session},
		"detach":   &piwire.Detach{SessionID: s.session},
		"prompt":   &piwire.Prompt{SessionID: s.session, Text: "prompt"},
		"steer":    &piwire.Steer{SessionID: s.session, Text: "steer"},
		"abort":    &piwire.Abort{SessionID: s.session},
		"model":    &piwire.SetModel{SessionID: s.session, Model: piwire.ModelRef{Provider: "test", ID: []string{"model", "other"}[s.chunk%2]}},
		"thinking": &piwire.SetThinking{SessionID: s.session, ThinkingLevel: []piwire.ThinkingLevel{"off", "high", "max"}[s.chunk%3]},
		"list":     &piwire.List{},
	}[s.what]
	_, err := c.Do(ctx, cmd)
	if e, ok := errors.AsType[*client.Error](err); ok {
		switch e.Code {
		case piwire.CodeBusy, piwire.CodeInvalidRequest, piwire.CodeNotFound:
			return
		case piwire.CodeVersion, piwire.CodeSessionLocked, piwire.CodeNotImplemented, piwire.CodeInternal:
		}
	}
	if err != nil {
		w.fail("%s %s: %v", s.what, s.session, err)
	}
}

func (w *play) check(r *rig, clients []*client.Client) {
	for i, c := range clients {
		if err := c.Err(); err != nil {
			w.fail("client %d: %v", i, err)
			continue
		}
		for _, id := range []string{"s1", "s2", "s3"} {
			if got, want := shown(c, id), r.expected(id); got != "" && got != want {
				w.fail("client %d shows of %s\n%.600s\nwant\n%.600s", i, id, got, want)
			}
		}
	}
}
