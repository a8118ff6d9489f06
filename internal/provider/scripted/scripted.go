package scripted

import (
	"context"
	_ "embed" // the demo script
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

//go:embed demo.yaml
var demo []byte

// Model answers from a script. It implements [provider.Model]. It keeps nothing between
// requests but the number of attempts at the latest passes, which "times" needs.
type Model struct {
	rules    []rule
	mu       sync.Mutex
	attempts map[attempt]int // guarded by mu
}

// attempt names a pass of a session.
type attempt struct {
	session string
	message session.ItemID
	pass    int
}

// maxAttempts bounds the attempts that are remembered; beyond it all are forgotten.
const maxAttempts = 10_000

// Parse returns the model of a script, or an error that says where the script is wrong.
func Parse(data []byte) (*Model, error) {
	s, err := parse(data)
	if err != nil {
		return nil, err
	}
	return &Model{rules: s.Rules, attempts: make(map[attempt]int)}, nil
}

// Demo returns the model of the script that comes with roost. It looks around in the
// working directory with real tools and tells what it saw.
func Demo() *Model {
	m, err := Parse(demo)
	if err != nil {
		panic(fmt.Sprintf("the embedded script is broken: %v", err)) // a test parses it
	}
	return m
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		sc, pass, message := read(req)
		steps := m.steps(&sc, pass)
		if steps == nil {
			yield(provider.Part{}, provider.Errorf(provider.FaultRequest, "the script has no rule for %q", clip(sc.prompt)))
			return
		}
		p := player{ctx: ctx, yield: yield, scope: sc, attempt: m.count(attempt{req.CacheKey, message, pass})}
		p.skip = len(partial(req))
		p.usage.Input = estimate(req)
		p.play(steps)
	}
}

// steps returns what the script says to a prompt in a pass (from 0), and fills in what its
// rule captured.
func (m *Model) steps(sc *scope, pass int) []step {
	for _, r := range m.rules {
		switch {
		case r.pattern != nil:
			sc.captures = r.pattern.FindStringSubmatch(sc.prompt)
			if sc.captures == nil {
				continue
			}
		case r.Contains != "" && !strings.Contains(strings.ToLower(sc.prompt), strings.ToLower(r.Contains)):
			continue
		}
		steps := r.Passes[min(pass, len(r.Passes)-1)]
		return append(make([]step, 0, len(steps)), steps...) // never nil
	}
	return nil
}

// count returns how many attempts at a pass there were before, and adds one.
func (m *Model) count(a attempt) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.attempts) >= maxAttempts {
		clear(m.attempts)
	}
	n := m.attempts[a]
	m.attempts[a] = n + 1
	return n
}

// read finds the last message of the person, what has happened since, and which pass this
// is: answers that were cut do not count, because their rest belongs to the same pass.
func read(req *provider.Request) (sc scope, pass int, message session.ItemID) {
	items := req.Items
	if req.Continue && len(items) > 0 {
		items = items[:len(items)-1]
	}
	for _, it := range items {
		switch it := it.(type) {
		case *session.User:
			sc.prompt, sc.tools, pass, message = text(it.Blocks), nil, 0, it.ID
		case *session.Assistant:
			if it.Status == session.Complete {
				pass++
			}
		case *session.Tool:
			sc.tools = append(sc.tools, it.Output)
		}
	}
	return sc, pass, message
}

// partial returns the text of the cut answers at the end, which is what the person has
// already seen of this pass. Without Continue the pass begins again.
func partial(req *provider.Request) string {
	if !req.Continue {
		return ""
	}
	seen := ""
	for i, v := range slices.Backward(req.Items) {
		a, ok := v.(*session.Assistant)
		if !ok || a.Status == session.Complete && i < len(req.Items)-1 {
			break
		}
		seen = text(a.Blocks) + seen
	}
	return seen
}

func text(blocks []session.Block) string {
	var b strings.Builder
	for _, bl := range blocks {
		if t, ok := bl.(session.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// estimate guesses the tokens of a history, at four characters each.
func estimate(req *provider.Request) int64 {
	n := len(req.System)
	for _, it := range req.Items {
		switch it := it.(type) {
		case *session.User:
			n += len(text(it.Blocks))
		case *session.Assistant:
			n += len(text(it.Blocks))
		case *session.Tool:
			n += len(it.Input) + len(it.Output)
		}
	}
	return int64(n/4) + 1
}

func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
