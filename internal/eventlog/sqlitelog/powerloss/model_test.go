//go:build linux

package powerloss

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// outcome is what the log holds of a session; the zero outcome is that there is none.
type outcome struct {
	last, snapshot session.Seq
	sum            uint64 // of everything that was said and is known of it
}

func outcomeOf(s *session.State, snapshot session.Seq) (outcome, error) {
	if s.Seq == 0 {
		return outcome{}, nil
	}
	h := fnv.New64a()
	head, err := eventlog.AppendHead(nil, s.Head)
	if err != nil {
		return outcome{}, err
	}
	items, err := eventlog.AppendItems(head, s.Settled)
	if err != nil {
		return outcome{}, err
	}
	_, _ = h.Write(items)
	fmt.Fprint(h, s.Run != nil)
	return outcome{last: s.Seq, snapshot: snapshot, sum: h.Sum64()}, nil
}

// stored reads a session and what the log holds of it.
func stored(ctx context.Context, log eventlog.Log, id session.ID) (*session.State, outcome, error) {
	snapshot, err := log.Load(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return &session.State{}, outcome{}, nil
	}
	if err != nil {
		return nil, outcome{}, err
	}
	s, err := eventlog.Restore(ctx, log, id)
	if err != nil {
		return nil, outcome{}, err
	}
	o, err := outcomeOf(s, snapshot.Head.Seq)
	return s, o, err
}

// promises is what the log has acknowledged of each session, and what it may hold besides,
// because it was asked for and not answered, or answered with an error that leaves it open.
type promises struct {
	mu    sync.Mutex
	kept  map[session.ID]outcome
	maybe map[session.ID][]outcome
}

func newPromises() *promises {
	return &promises{kept: make(map[session.ID]outcome), maybe: make(map[session.ID][]outcome)}
}

func (p *promises) asked(id session.ID, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maybe[id] = append(p.maybe[id], o)
}

func (p *promises) acknowledged(id session.ID, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[id] = o
	delete(p.maybe, id)
}

// refused takes back the newest question: the log has said that nothing of it was written.
func (p *promises) refused(id session.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maybe[id] = p.maybe[id][:len(p.maybe[id])-1]
}

// shown is an outcome that somebody has seen.
func (p *promises) shown(id session.ID, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[id] = o
}

// allowed returns the outcomes that each session may have.
func (p *promises) allowed() map[session.ID][]outcome {
	all := make(map[session.ID][]outcome)
	for id, o := range p.kept {
		all[id] = []outcome{o}
	}
	for id, more := range p.maybe {
		if len(all[id]) == 0 {
			all[id] = []outcome{{}}
		}
		all[id] = append(all[id], more...)
	}
	return all
}

// author writes one session.
type author struct {
	id       session.ID
	log      eventlog.Log
	promises *promises
	size     int // of most texts, at most
	random   *rand.Rand

	state    *session.State
	snapshot session.Seq
	settled  int // items of the snapshot
	at       int64
}

// step does something with the session. The error is that of the log.
func (a *author) step(ctx context.Context) error {
	switch n := a.random.IntN(100); {
	case a.state.Seq == 0 || n >= 20:
		return a.append(ctx)
	case n < 3:
		return a.do(&session.State{}, 0, func() error { return a.log.Delete(ctx, a.id) })
	case a.state.Run == nil && a.state.Seq > a.snapshot:
		s := eventlog.Snapshot{Head: a.state.Head, From: a.settled, Items: a.state.Settled[a.settled:]}
		return a.do(a.state, a.state.Seq, func() error { return a.log.Compact(ctx, a.id, s) })
	}
	return nil
}

func (a *author) append(ctx context.Context) error {
	after := a.state.Seq
	next := *a.state
	var records []session.Record
	for range 1 + a.random.IntN(4) {
		a.at++
		r := session.Record{Seq: next.Seq + 1, At: a.at, Event: a.event(&next)}
		next.Apply(r)
		records = append(records, r)
	}
	return a.do(&next, a.snapshot, func() error { return a.log.Append(ctx, a.id, after, records) })
}

func (a *author) event(s *session.State) session.Event {
	switch {
	case s.Seq == 0:
		return session.Created{ID: a.id, Cwd: "/work", Name: a.text(20)}
	case s.Run != nil:
		return session.RunEnded{Error: a.text(100)}
	case a.random.IntN(4) == 0:
		return session.Renamed{Name: a.text(30)}
	}
	size := a.size
	if a.random.IntN(20) == 0 {
		size = max(size, 40_000)
	}
	run := s.LastRun + 1
	return session.RunStarted{
		Run: run, Item: session.ItemID(fmt.Sprintf("u%d", run)),
		Blocks: []session.Block{session.Text{Text: a.text(size)}},
	}
}

// text is different each time.
func (a *author) text(size int) string {
	word := fmt.Sprintf("%x ", a.random.Uint64())
	return strings.Repeat(word, 1+a.random.IntN(size)/len(word))
}

// do asks the log for something that leads to a state.
func (a *author) do(next *session.State, snapshot session.Seq, ask func() error) error {
	o, err := outcomeOf(next, snapshot)
	if err != nil {
		return err
	}
	a.promises.asked(a.id, o)
	if err := ask(); err != nil {
		if errors.Is(err, eventlog.ErrFull) || errors.Is(err, eventlog.ErrDisk) {
			a.promises.refused(a.id)
		}
		return err
	}
	a.promises.acknowledged(a.id, o)
	a.become(next, snapshot)
	return nil
}

func (a *author) become(s *session.State, snapshot session.Seq) {
	if snapshot != a.snapshot || s.Seq == 0 {
		a.settled = len(s.Settled)
	}
	a.state, a.snapshot, a.at = s, snapshot, max(a.at, s.UpdatedAt)
}

// load begins with what the log holds.
func (a *author) load(ctx context.Context) error {
	snapshot, err := a.log.Load(ctx, a.id)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	s, o, err := stored(ctx, a.log, a.id)
	if err != nil {
		return err
	}
	a.become(s, o.snapshot)
	a.settled = len(snapshot.Items)
	return nil
}

// recover goes on after the log could not do something. What it shows then was promised.
func (a *author) recover(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff != sqlite3.SQLITE_IOERR && e.Code() != sqlite3.SQLITE_FULL {
		return err
	}
	if err := a.load(ctx); err != nil {
		return err
	}
	o, err := outcomeOf(a.state, a.snapshot)
	if err == nil {
		a.promises.shown(a.id, o)
	}
	return err
}
