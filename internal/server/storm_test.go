package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piwire"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// storm is a server under load that is killed again and again.
type storm struct {
	h     *home
	model *stormModel
	over  atomic.Bool  // no client begins anything new
	begun atomic.Int64 // ends of the process, and those that are over
	done  atomic.Int64
	turns atomic.Int64 // that have ended

	mu       sync.Mutex
	messages int
	sent     map[string]*sentMessage
	deployed map[string]int    // by a Cursor client, by the id in the call
	told     map[string]string // the words about a message, as a client was told them by the end of its run
	failures []string
}

// sentMessage is a message that a client has sent.
type sentMessage struct {
	session string
	acked   bool  // the server has said that it has it
	before  int64 // ends of the process before it was sent
	ended   int64 // and before its run had ended; -1 as long as it has not
}

// setting is a number that the environment may set.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func newStorm(t *testing.T, seed uint64) *storm {
	h := newHome(t, "rules: []")
	s := &storm{h: h, model: newStormModel(t, seed), sent: make(map[string]*sentMessage), deployed: make(map[string]int), told: make(map[string]string)}
	h.write("roost.yaml", fmt.Sprintf(`
providers:
  test:
    api: openai-chat
    base_url: %s/v1
    models: [{id: m, context_window: 1000000}]
default_model: test/m
pi: {prompt_response: accepted}
`, s.model.url))
	return s
}

func (s *storm) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) < 20 {
		s.failures = append(s.failures, fmt.Sprintf(format, args...))
	}
}

// say returns a new message, in which nothing is like in any other.
func (s *storm) say() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages++
	text := fmt.Sprintf("m%d.", s.messages)
	s.sent[text] = &sentMessage{before: s.done.Load(), ended: -1}
	return text
}

// acked notes that the server has taken a message.
func (s *storm) acked(text, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[text].acked, s.sent[text].session = true, session
}

// ended notes that a client has seen the end of the run of a message.
func (s *storm) ended(text string) {
	s.turns.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[text].ended = s.begun.Load()
}

// tell notes what a client was told in all.
func (s *storm) tell(said string) {
	words := byMessage(said)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.told, words)
}

// modelWord is a word that the storm's model says.
var modelWord = regexp.MustCompile(`(m\d+)w\d+`)

// byMessage are the words about each message in a text, in their order.
func byMessage(said string) map[string]string {
	words := make(map[string]string)
	for _, found := range modelWord.FindAllStringSubmatch(said, -1) {
		words[found[1]] += found[0] + " "
	}
	return words
}

// partOf reports whether a client was told nothing but what there is, in its order. What was on its way
// when a connection broke may be missing: Cursor's protocol cannot say what has arrived.
func partOf(told, words string) bool {
	rest := strings.Fields(words)
	for word := range strings.FieldsSeq(told) {
		i := slices.Index(rest, word)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// TestKillStorm kills a server under load, with clients of both protocols that come back by themselves:
// with ROOST_KILLS, ROOST_CLIENTS and ROOST_SEED more often, under more load, or differently. Every fifth
// time it is asked to end instead.
func TestKillStorm(t *testing.T) {
	kills, clients, seed := setting(t, "ROOST_KILLS", 8), setting(t, "ROOST_CLIENTS", 12), setting(t, "ROOST_SEED", 1)
	rng := rand.New(rand.NewPCG(uint64(seed), 2))
	s := newStorm(t, uint64(seed))
	s.h.start()
	var all sync.WaitGroup
	for n := range clients {
		if n%2 == 0 {
			all.Go(func() { s.drivePi(rand.New(rand.NewPCG(uint64(seed), uint64(3+n)))) })
		} else {
			all.Go(s.driveCursor(n))
		}
	}
	began := time.Now()
	var start, drain time.Duration // the longest
	terms := 0
	for range kills {
		time.Sleep(time.Duration(50+rng.IntN(500)) * time.Millisecond) // when it is killed is chance
		signal := syscall.SIGKILL
		if rng.IntN(5) == 0 {
			signal = syscall.SIGTERM
			terms++
		}
		s.begun.Add(1)
		drain = max(drain, s.end(signal))
		s.done.Add(1)
		from := time.Now()
		s.h.start()
		start = max(start, time.Since(from))
	}
	s.over.Store(true)
	all.Wait()
	s.check(t)
	for _, f := range s.failures {
		t.Error(f)
	}
	if s.turns.Load() == 0 {
		t.Error("no run has ended")
	}
	requests, repeated := 0, 0
	for text := range s.sent {
		requests += s.model.requests(text)
		repeated += max(0, s.model.requests(text)-2) // a run without an end of the process has at most two
	}
	fmt.Printf("storm: %d ends of the process (%d by SIGTERM, each within %v) in %v under %d clients; %d messages, %d runs seen to their end, %d provider requests, of which at least %d were repeated, %d calls on the server and %d in clients; starts took up to %v\n",
		kills, terms, drain.Round(time.Millisecond), time.Since(began).Round(time.Second), clients, s.messages, s.turns.Load(), requests, repeated, len(strings.Fields(s.h.read("effects"))), len(s.deployed), start.Round(time.Millisecond))
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// end ends the process, and returns how long it took to end by itself.
func (s *storm) end(signal syscall.Signal) time.Duration {
	if signal == syscall.SIGKILL {
		s.h.stop(signal)
		return 0
	}
	cmd := s.h.cmd
	from := time.Now()
	hung := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	s.h.stop(signal)
	hung.Stop()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		s.fail("SIGTERM: the process ended with %d", code)
	}
	return time.Since(from)
}

// check looks at everything when all is over.
func (s *storm) check(t *testing.T) {
	t.Helper()
	c := s.h.api()
	list := s.list(t, c)
	s.listed(t, list)
	found := make(map[string]int)
	for _, session := range list {
		s.rest(c, session.Id)
		_, items, err := c.Transcript(s.h.context(), session.Id)
		if err != nil {
			t.Fatal(err)
		}
		s.transcript(session.Id, items, found)
		said := ""
		for _, item := range items {
			said += blocksOf(item.GetAssistant().GetBlocks()) + " "
		}
		for about, words := range byMessage(said) {
			if told, ok := s.told[about]; ok && !partOf(told, words) {
				t.Errorf("session %s has %q, and its client was told %q", session.Id, words, told)
			}
			delete(s.told, about)
		}
	}
	for about, told := range s.told {
		if told != "" {
			t.Errorf("a client was told %q about %s, which no session has", told, about)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, m := range s.sent {
		switch n := found[text]; {
		case n > 1:
			t.Errorf("the message %s is there %d times", text, n)
		case n == 0 && m.acked:
			t.Errorf("session %s has lost the message %s", m.session, text)
		}
		if m.ended < 0 {
			continue
		}
		// A run has at most two passes, and each kill may cost one request again.
		if asked, most := s.model.requests(text), 2+int(m.ended-m.before); asked > most {
			t.Errorf("the model was asked %d times about %s, in whose run the process ended %d times", asked, text, m.ended-m.before)
		}
	}
	for call, n := range s.deployed {
		if n > 1 {
			t.Errorf("a client ran %s %d times", call, n)
		}
	}
	effects := make(map[string]bool)
	for line := range strings.FieldsSeq(s.h.read("effects")) {
		if effects[line] {
			t.Errorf("the command of %s ran twice", line)
		}
		effects[line] = true
	}
}

// rest waits until a session is at rest. A run whose client has used up its retries waits for the tools
// of that client, so it is aborted.
func (s *storm) rest(c *client.Client, id string) {
	s.h.t.Helper()
	s.h.follow(c, id, func(v *client.View) bool {
		if v.Session.Run != nil && strings.HasPrefix(id, "agent-") {
			_, _ = c.Abort(s.h.context(), id) // it may have ended meanwhile
		}
		return v.Session.Run == nil
	})
}

// list returns all sessions, page by page.
func (s *storm) list(t *testing.T, c *client.Client) (list []*roostv1.SessionSummary) {
	t.Helper()
	for session, err := range c.Sessions(s.h.context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, session)
	}
	return list
}

// listed checks that pi's clients are shown the same sessions.
func (s *storm) listed(t *testing.T, list []*roostv1.SessionSummary) {
	t.Helper()
	p := s.h.dial()
	result, err := p.Do(s.h.context(), &piwire.List{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(result.(*piwire.ListResult).Sessions); n != len(list) {
		t.Errorf("pi lists %d sessions of %d", n, len(list))
	}
}

// transcript checks one session: no word is repeated or out of order, every call has one result.
func (s *storm) transcript(id string, items []*roostv1.Item, found map[string]int) {
	last := make(map[string]int) // the last word about a message
	results := make(map[string]int)
	var calls []string
	for _, item := range items {
		switch {
		case item.GetUser() != nil:
			for _, text := range messageText.FindAllString(blocksOf(item.GetUser().Blocks), -1) {
				found[text]++
			}
		case item.GetAssistant() != nil:
			s.words(id, blocksOf(item.GetAssistant().Blocks), last)
			for _, b := range item.GetAssistant().Blocks {
				if call := b.GetToolCall(); call != nil {
					calls = append(calls, call.Id)
				}
			}
		case item.GetTool() != nil:
			results[item.Id]++
		}
	}
	for _, call := range calls {
		if results[call] != 1 {
			s.fail("session %s: the call %s has %d results", id, call, results[call])
		}
	}
}

// words checks that the words about each message are said in their order, and once.
func (s *storm) words(who, text string, last map[string]int) (ok bool) {
	ok = true
	for word := range strings.FieldsSeq(text) {
		about, number, _ := strings.Cut(word, "w")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue // of the server
		}
		if n <= last[about] {
			ok = false
			s.fail("%s: %s after word %d of %s in %q", who, word, last[about], about, text)
		}
		last[about] = n
	}
	return ok
}

func blocksOf(blocks []*roostv1.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(client.BlockText(block))
	}
	return b.String()
}

// socket is where pi's clients come in.
func (s *storm) socket() string { return filepath.Join(s.h.dir, "s") }

// shown is the text of each item that a pi client shows.
func shown(v *pi.View) map[string]string {
	texts := make(map[string]string)
	for _, i := range v.Transcript() {
		switch i := i.(type) {
		case *piwire.UserItem:
			texts[i.ID] = text(i.Content)
		case *piwire.AssistantItem:
			texts[i.ID] = text(i.Content)
		case *piwire.ToolItem:
		}
	}
	return texts
}
