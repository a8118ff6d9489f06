package simulation

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/session"
)

// world is everything that there is in one run. Its own fields belong to the goroutine of run, except
// where a lock is named.
type world struct {
	ctx     context.Context
	cancel  context.CancelFunc
	story   io.Writer
	telling sync.Mutex // guards story
	began   time.Time
	dir     string

	rng   *rand.Rand // the models and the tools draw from it as well
	dice  sync.Mutex // guards words and calm
	words int
	calm  bool // nothing goes wrong any more

	net      *network
	log      *memlog.Log
	blobs    *blob.Memory
	model    *model
	proc     *process // nil while there is none
	deposed  []*process
	lives    int
	accepted bool           // pi prompts are answered when they are accepted
	open     sync.WaitGroup // what clients are waiting for
	rest     sync.WaitGroup // what is left of processes

	pis      []*piClient
	cursors  []*cursorClient
	watchers map[string]*watcher

	facts     sync.Mutex // guards what follows
	failure   string
	known     []string // sessions
	remote    map[string]bool
	gone      map[string]bool
	rewound   map[string]bool
	abortedIn map[string]bool
	messages  int
	said      map[string]*said
	effects   map[string]int // runs of unsafe calls
	lastTurn  map[*cursorClient]string
}

func newWorld(seed uint64, dir string, story io.Writer) *world {
	w := &world{story: story, began: time.Now(), dir: dir, rng: rand.New(&source{of: rand.NewPCG(seed, seed)}), net: newNetwork()}
	w.model = &model{w}
	w.forget()
	return w
}

// forget makes everything new that a world remembers, but for the server.
func (w *world) forget() {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.log, w.blobs, w.watchers = memlog.New(), new(blob.Memory), make(map[string]*watcher)
	w.remote, w.gone = make(map[string]bool), make(map[string]bool)
	w.abortedIn, w.rewound = make(map[string]bool), make(map[string]bool)
	w.known, w.said, w.effects, w.lastTurn = nil, make(map[string]*said), make(map[string]int), make(map[*cursorClient]string)
}

// simulate runs a world and returns what was wrong, "" for nothing.
func simulate(t *testing.T, seed uint64, dir string, steps int, story io.Writer) string {
	t.Helper()
	failure := ""
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, dir, story)
		w.run(steps)
		failure = w.failure
	})
	return failure
}

func (w *world) run(steps int) {
	w.accepted = w.rng.IntN(2) == 0
	w.start()
	w.arrive("")
	for range steps {
		w.step()
		time.Sleep(w.drawn(1500)) // simulated
		w.check()
		if w.failed() {
			break
		}
	}
	w.quiet()
	w.depart()
	w.kill()
	w.rest.Wait()
}

// arrive brings clients, whose names end in suffix.
func (w *world) arrive(suffix string) {
	for _, name := range []string{"ann", "bob"}[:1+w.rng.IntN(2)] {
		w.pis = append(w.pis, &piClient{w: w, name: name + suffix})
	}
	for _, name := range []string{"cat", "dan"}[:w.rng.IntN(3)] {
		w.cursors = append(w.cursors, w.newCursorClient(name+suffix))
	}
}

// depart has all clients leave for good.
func (w *world) depart() {
	w.cancel()
	w.unwatch()
	for _, p := range w.pis {
		p.leave()
	}
	for _, p := range w.cursors {
		p.leave()
	}
	w.open.Wait()
	for _, p := range w.cursors {
		p.c.Close()
	}
	w.pis, w.cursors = nil, nil
}

func (w *world) failed() bool {
	w.facts.Lock()
	defer w.facts.Unlock()
	return w.failure != ""
}

// actions is what may happen, as often as it is named.
var actions = []string{
	"pi prompt", "pi prompt", "pi prompt", "pi attach", "pi attach", "pi create", "pi steer", "pi abort", "pi thinking", "pi model", "pi detach", "pi list",
	"pi come", "pi come", "pi leave", "pi slow", "pi fast",
	"cursor prompt", "cursor prompt", "cursor prompt", "cursor prompt", "cursor break", "cursor cancel", "cursor stop", "cursor steer", "cursor queue",
	"watch", "watch", "unwatch", "answer", "answer", "delete", "compact", "rewind",
	"kill", "kill in a write", "kill in a write", "write lost", "disk full", "answer lost", "lease lost", "wait",
}

func (w *world) step() {
	action := pick(w.rng, actions...)
	w.note("— %s", action)
	switch kind := action[:min(3, len(action))]; kind {
	case "pi ":
		w.stepPi(w.pis[w.rng.IntN(len(w.pis))], action[3:])
		return
	case "cur":
		if len(w.cursors) > 0 {
			w.cursors[w.rng.IntN(len(w.cursors))].do(action[len("cursor "):])
		}
		return
	}
	switch action {
	case "watch":
		if id := w.some(); id != "" {
			w.watcher(id).come()
		}
	case "unwatch":
		w.unwatch()
	case "answer":
		w.answer(w.rng.IntN(3) > 0)
	case "delete":
		w.delete()
	case "compact":
		w.compact()
	case "rewind":
		w.rewind()
	case "wait":
		time.Sleep(time.Duration(w.rng.IntN(60)) * time.Second) // simulated
	case "kill":
		w.kill()
		w.again()
	case "kill in a write":
		w.killInWrite(memlog.Fault(pick(w.rng, int(memlog.Before), int(memlog.Torn), int(memlog.None))))
	case "write lost":
		w.log.Fail(1+w.rng.IntN(3), memlog.Before)
	case "disk full":
		w.log.Fail(1+w.rng.IntN(3), memlog.Full)
	case "answer lost":
		w.log.Fail(1+w.rng.IntN(3), memlog.After)
	case "lease lost":
		w.depose()
		time.Sleep(w.drawn(3000)) // simulated
		w.check()
		w.endDeposed()
	}
}

func (w *world) stepPi(p *piClient, what string) {
	switch what {
	case "come":
		p.come()
	case "leave":
		p.leave()
	case "slow":
		if p.c != nil {
			p.conn.pace(pick(w.rng, 1, 7, 100), time.Duration(w.rng.IntN(50))*time.Millisecond)
		}
	case "fast":
		if p.c != nil {
			p.conn.pace(0, 0)
		}
	default:
		p.come()
		id := w.some()
		if id == "" {
			what = "create"
		}
		p.do(what, id)
	}
}

// some returns one of the sessions, "" when there is none. Seldom it is one that there is not yet or
// no longer.
func (w *world) some() string {
	ids := w.sessions()
	if w.rng.IntN(8) > 0 {
		ids = slices.DeleteFunc(ids, func(id string) bool { _, err := lastOf(w, id); return err != nil })
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[w.rng.IntN(len(ids))]
}

func (w *world) watcher(id string) *watcher {
	v := w.watchers[id]
	if v == nil {
		v = &watcher{w: w, id: id}
		w.watchers[id] = v
	}
	return v
}

func (w *world) unwatch() {
	for _, v := range w.watchers {
		v.leave()
	}
}

// again starts the server after a while.
func (w *world) again() {
	time.Sleep(w.drawn(2000)) // simulated
	w.start()
}

// killInWrite kills the server in the middle of a write, if it comes to one.
func (w *world) killInWrite(fault memlog.Fault) {
	dead := make(chan struct{})
	w.log.CrashAt(1+w.rng.IntN(4), fault, func() { close(dead) })
	select {
	case <-dead:
	case <-time.After(w.drawn(5000)):
	}
	w.kill()
	w.again()
}

// answer answers a question of a session of this server's tools.
func (w *world) answer(allow bool) {
	for _, id := range w.sessions() {
		s, err := w.proc.engine.State(w.ctx, session.ID(id))
		if err != nil || s.Run == nil {
			continue
		}
		for _, item := range s.Run.Batch {
			if item.Query != nil && item.Status == session.Streaming {
				_, _ = w.proc.engine.Do(w.ctx, session.ID(id), session.Answer{Call: item.Call, Allow: allow})
			}
		}
	}
}

// delete removes a session of pi's protocol, seldom.
func (w *world) delete() {
	id := w.some()
	if id == "" || w.rng.IntN(4) > 0 || !w.giveUp(id) {
		return
	}
	_ = w.proc.engine.Delete(w.ctx, session.ID(id))
	delete(w.watchers, id)
}

// giveUp notes that a session is being deleted, whatever comes of it. It returns false for one of
// Cursor's protocol.
func (w *world) giveUp(id string) bool {
	w.facts.Lock()
	defer w.facts.Unlock()
	if w.remote[id] {
		return false
	}
	w.gone[id] = true
	return true
}

// compact has the old part of a session summarised.
func (w *world) compact() {
	if id := w.some(); id != "" {
		_, err := w.proc.engine.Do(w.ctx, session.ID(id), session.Compact{})
		w.note("compact %s: %v", id, err)
	}
}

// rewind takes the last messages of a session away, seldom.
func (w *world) rewind() {
	id := w.some()
	if id == "" || w.rng.IntN(3) > 0 {
		return
	}
	s, err := w.proc.engine.State(w.ctx, session.ID(id))
	if err != nil {
		return
	}
	for _, item := range slices.Backward(s.Settled) {
		if u, ok := item.(*session.User); ok && u.Note == session.NoteNone {
			w.rewinds(id)
			_, err := w.proc.engine.Do(w.ctx, session.ID(id), session.Rewind{Item: u.ID})
			w.note("rewind %s to %s: %v", id, u.ID, err)
			return
		}
	}
}

// check looks at everything that clients are shown now.
func (w *world) check() {
	synctest.Wait()
	for _, p := range w.pis {
		p.check()
	}
	for _, v := range w.watchers {
		v.check()
	}
}

// quiet lets everything come to rest, and checks it.
func (w *world) quiet() {
	w.setCalm(true)
	w.log.Mend()
	for _, p := range w.pis {
		if p.c != nil {
			p.conn.pace(0, 0)
		}
	}
	for n := range 4000 {
		synctest.Wait()
		if w.idle() {
			break
		}
		w.answer(true)
		if n > 2000 {
			w.abortOrphans()
		}
		time.Sleep(time.Second) // simulated
	}
	if !w.failed() && !w.idle() {
		w.fail("the world does not come to rest: %s", w.busyWith())
	}
	time.Sleep(10 * time.Minute) // simulated: slow clients see the rest
	w.check()
	if !w.failed() {
		w.settle()
	}
}

func (w *world) setCalm(calm bool) {
	w.dice.Lock()
	defer w.dice.Unlock()
	w.calm = calm
}

// idle reports whether no run goes on and no client waits.
func (w *world) idle() bool { return w.busyWith() == "" }

func (w *world) busyWith() string {
	for _, p := range w.cursors {
		if p.busy() {
			return p.name + " waits"
		}
	}
	for _, id := range w.sessions() {
		if s, err := w.proc.engine.State(w.ctx, session.ID(id)); err == nil && s.Run != nil {
			return "session " + id + " runs"
		}
	}
	return ""
}

// abortOrphans ends runs that wait for the tools of a client that does not come back.
func (w *world) abortOrphans() {
	for _, p := range w.cursors {
		if !p.busy() {
			_, _ = w.proc.engine.Do(w.ctx, session.ID(p.session), session.Abort{})
		}
	}
}

// source is chance that several goroutines draw from.
type source struct {
	mu sync.Mutex
	of rand.Source
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Uint64()
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
