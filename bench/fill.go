package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// prose is about what a model says in a few sentences, in bytes.
var prose = strings.Repeat("Some words of an answer, as they come. ", 10)

// author makes the records of a session as the server would have.
type author struct {
	id      session.ID
	model   session.ModelRef
	records []session.Record
	runs    session.RunID
	pass    int
}

func newAuthor(id session.ID, cwd string) *author {
	a := &author{id: id, model: session.ModelRef{Provider: "bench", ID: modelID}}
	a.add(session.Created{ID: id, Cwd: cwd, Model: a.model, Thinking: session.ThinkingOff})
	return a
}

func (a *author) add(events ...session.Event) {
	for _, e := range events {
		seq := session.Seq(len(a.records) + 1)
		a.records = append(a.records, session.Record{Seq: seq, At: 1_790_000_000_000 + int64(seq), Event: e})
	}
}

// run begins a run.
func (a *author) run(prompt string) {
	a.runs++
	a.pass = 0
	item := session.ItemID(fmt.Sprintf("u%d", a.runs))
	a.add(session.RunStarted{Run: a.runs, Item: item, Blocks: []session.Block{session.Text{Text: prompt}}})
}

// begin begins a pass that says something.
func (a *author) begin(text string) {
	a.pass++
	item := session.ItemID(fmt.Sprintf("a%d-%d", a.runs, a.pass))
	a.add(session.PassStarted{Pass: a.pass, Item: item, Model: a.model},
		session.BlockStarted{Block: session.Text{}}, session.Delta{Text: text})
}

// say is a whole pass, the last of its run.
func (a *author) say(text string) {
	a.begin(text)
	a.add(session.PassEnded{Status: session.Complete, Stop: session.StopEnd}, session.RunEnded{})
}

// use is a pass that calls a tool, and its result.
func (a *author) use(text, output string) {
	a.begin(text)
	call := session.NewCallID(a.runs, a.pass, 0)
	a.add(session.BlockStarted{Block: session.ToolCall{Call: call, Name: "bash"}},
		session.Delta{Index: 1, Text: `{"command":"go test ./..."}`}, session.BlockEnded{Index: 1},
		session.PassEnded{Status: session.Complete, Stop: session.StopToolUse},
		session.ToolStarted{Call: call}, session.ToolEnded{Call: call, Output: output})
}

// fill makes sessions of one run, and others that were cut in the middle of an answer.
func (h *home) fill(ctx context.Context, idle, cut int) error {
	return h.write(func(log eventlog.Log) error {
		const writers = 64
		return parallel(writers, func(w int) error {
			for n := w; n < idle+cut; n += writers {
				a := newAuthor(session.ID(fmt.Sprintf("bench%05d", n)), h.dir)
				a.run(order{tokens: 500, rate: 50}.String())
				if n < idle {
					a.say(prose)
				} else {
					a.begin(prose)
				}
				if err := log.Append(ctx, a.id, 0, a.records); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// long makes a session with so many items, four to a run, compacted as the server does it.
func (h *home) long(ctx context.Context, id session.ID, items int) error {
	a := newAuthor(id, h.dir)
	for range items / 4 {
		a.run("Please have another look at the tests, and say what you found.")
		a.use("I run the tests first.", strings.Repeat("ok  \tgithub.com/roost-dev/roost/internal/session\t0.012s\n", 14))
		a.say(prose)
	}
	return h.write(func(log eventlog.Log) error {
		if err := log.Append(ctx, id, 0, a.records); err != nil {
			return err
		}
		state, err := eventlog.Restore(ctx, log, id)
		if err != nil {
			return err
		}
		if len(state.Settled) != items {
			return fmt.Errorf("the session has %d items of %d", len(state.Settled), items)
		}
		return log.Compact(ctx, id, eventlog.Snapshot{Head: state.Head, Items: state.Settled})
	})
}

// write opens the home's event log for f. No server may run.
func (h *home) write(f func(eventlog.Log) error) error {
	log, err := sqlitelog.Open(h.data())
	if err != nil {
		return err
	}
	return errors.Join(f(log), log.Close())
}

// copy makes a home with the same data.
func (h *home) copy() (*home, error) {
	fresh, err := h.lab.newHome(time.Minute)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(fresh.data()); err != nil {
		return nil, errors.Join(err, fresh.remove())
	}
	if err := copyTree(fresh.data(), os.DirFS(h.data())); err != nil {
		return nil, errors.Join(err, fresh.remove())
	}
	return fresh, nil
}

// copyTree copies a tree of directories and files, keeping it private.
func copyTree(to string, from fs.FS) error {
	if err := os.CopyFS(to, from); err != nil {
		return err
	}
	return os.Chmod(to, 0o700)
}
