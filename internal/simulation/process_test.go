package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/session"
)

// process is one life of the server.
type process struct {
	log    *memlog.Log
	engine *actor.Engine
	pi     *pi.Server
	cursor *cursor.Server
	http   *http.Server
	door   *doorListener
	unobs  func()
}

// start begins a life on what is on the disk.
func (w *world) start() {
	w.lives++
	p := &process{log: w.log, door: newDoor()}
	life, ids := w.lives, new(atomic.Int64)
	logger := slog.New(slog.NewTextHandler(lines{w}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p.engine = actor.New(actor.Config{
		Log: w.log, Models: w.model, Blobs: w.blobs, Tools: w.tools(), Dir: w.dir, OutputDir: w.dir, Judge: judge,
		DefaultModel: func() session.ModelRef { return theModels[0].Ref }, Logger: logger,
		NewID: func() session.ID { return session.ID(fmt.Sprintf("s%d-%d", life, ids.Add(1))) },
	})
	models := func() []catalog.Model { return theModels }
	p.pi = pi.New(pi.Options{
		Engine: p.engine, Models: models, Images: noImages,
		ServerID: "server", PromptAccepted: w.accepted, Logger: logger,
	})
	p.cursor = cursor.New(cursor.Options{
		Engine: p.engine, Models: models, Default: func() session.ModelRef { return theModels[0].Ref }, Blobs: w.blobs, Logger: logger,
	})
	p.unobs = p.engine.Observe(func(c actor.Change) {
		switch {
		case c.Kind == actor.SessionRemoved:
			p.pi.Removed(c.ID)
		case c.Kind == actor.SessionCreated && c.Origin != pi.Origin:
			p.pi.Changed()
		}
	})
	if err := p.engine.Start(context.Background()); err != nil {
		w.fail("start: %v", err)
	}
	mux := http.NewServeMux()
	p.cursor.Register(mux)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	p.http = &http.Server{Handler: mux, Protocols: protocols, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	w.rest.Go(func() {
		if err := p.http.Serve(p.door); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			w.fail("serve: %v", err)
		}
	})
	w.proc = p
	w.net.open(map[string]func(net.Conn){
		"http": p.door.enter,
		"pi":   func(c net.Conn) { go p.pi.ServeConn(c) },
	})
}

// kill ends the life: the connections are gone, and what is not on the disk has never been.
func (w *world) kill() {
	p := w.proc
	if p == nil {
		return
	}
	w.proc = nil
	w.unwatch()
	w.log = p.log.Crash()
	w.net.open(nil)
	w.net.cut()
	w.bury(p)
}

// depose takes the lease away from the process. It lives on for a while, with its clients, and does
// not know.
func (w *world) depose() {
	p := w.proc
	if p == nil {
		return
	}
	w.unwatch()
	w.log = p.log.Revoke()
	w.deposed = append(w.deposed, p)
	w.start()
}

// end ends processes that were deposed.
func (w *world) endDeposed() {
	w.net.cut() // its clients find the new owner
	for _, p := range w.deposed {
		p.log.Crash()
		w.bury(p)
	}
	w.deposed = nil
}

// bury lets the goroutines of a process end. Nothing that they do is seen by anybody.
func (w *world) bury(p *process) {
	w.rest.Go(func() {
		p.unobs()
		p.cursor.Close()
		p.pi.Close()
		_ = p.http.Close()
		if err := p.engine.Close(context.Background()); err != nil {
			w.fail("close: %v", err)
		}
	})
}
