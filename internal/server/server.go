// Package server is the composition root: it opens everything in order, hands each part what
// it needs, and closes in reverse. Reading New is reading what roost is made of.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/telemetry"
)

// closeGrace is how long a server that is told to stop may take.
const closeGrace = 15 * time.Second

// Options says how a server is started. Config and DataDir are required.
type Options struct {
	Config  *config.Config
	DataDir string
	Socket  string // of pi's protocol; roost's own API is at Socket + ".http"; empty for none
	Listen  string // address of the HTTP listener; empty for none
	TLSCert string // PEM files for Listen; both or neither
	TLSKey  string
	Dir     string       // where sessions work that name no directory; empty for the process's own
	Logger  *slog.Logger // nil discards
	Version string
}

// Server is a running server.
type Server struct {
	opt      Options
	log      *slog.Logger
	metrics  telemetry.Set
	closers  []func(context.Context) error // in the order of opening
	endpoint Endpoint
}

// Endpoint is where clients find a server, and what they have to show.
type Endpoint struct {
	Socket     string // pi's protocol
	HTTPSocket string // roost's own API, for whoever may open the file
	URL        string // of the HTTP listener, without token
	Token      string // for the HTTP listener
	NewToken   bool   // the token was made at this start
}

// Open starts a server. When it returns, clients can connect, and every session that was in
// the middle of a run is going on.
func Open(ctx context.Context, opt Options) (*Server, error) {
	s := &Server{opt: opt}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s.log = slog.New(s.metrics.CountLog(opt.Logger.Handler()))
	s.metrics.AddProcess(opt.Version)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	cfg := s.opt.Config
	for _, w := range cfg.Warnings {
		s.log.Warn("configuration", slog.String("warning", w))
	}

	// 1. Whose data this is: one process owns the directory.
	dir, err := datadir.Open(s.opt.DataDir)
	if err != nil {
		return err
	}
	s.onClose(func(context.Context) error { return dir.Close() })

	// 2. What has happened.
	log, err := sqlitelog.Open(dir.Path())
	if err != nil {
		return err
	}
	s.onClose(func(context.Context) error { return log.Close() })
	s.tellRebuilt(log)
	observeLog(&s.metrics, log, dir)
	blobs, err := blob.OpenDir(dir.Join("blobs"))
	if err != nil {
		return err
	}

	// 3. Who thinks, and who does.
	models, err := openModels(cfg, newRequests(&s.metrics))
	if err != nil {
		return err
	}
	workDir, err := s.workDir()
	if err != nil {
		return err
	}

	// 4. Who decides.
	engineCfg := actor.Config{
		Log: newCountedLog(&s.metrics, log), Models: models, Blobs: blobs,
		NewID: func() session.ID { return session.ID(ulid.Make().String()) },
		Dir:   workDir, DefaultModel: models.first, DefaultThinking: cfg.DefaultThinking,
		Unconfined: !cfg.Workspace.Confine, OutputDir: dir.Join("outputs"),
		IdleUnload: cfg.Limits.IdleUnload, MaxLive: cfg.Limits.Sessions, MayWork: s.mayWork, Logger: s.log,
	}
	connect, err := s.agent(&engineCfg, dir)
	if err != nil {
		return err
	}
	engine := actor.New(engineCfg)
	connect(engine)
	s.onClose(engine.Close)
	observeEngine(&s.metrics, engine)
	s.background(func(stop <-chan struct{}) { s.giveBack(engine.Busy, stop) })

	// 5. Who speaks pi's protocol.
	id, err := serverID(dir)
	if err != nil {
		return err
	}
	front := pi.New(pi.Options{
		Engine: watchedBy(&s.metrics, engine, "pi"), Models: models.describe, Images: images(blobs), ServerID: id,
		PromptAccepted: cfg.Pi.PromptResponse == config.PromptAccepted, MaxConns: cfg.Limits.Connections, Logger: s.log,
	})
	s.onClose(func(context.Context) error { front.Close(); return nil })
	stop := engine.Observe(func(c actor.Change) {
		switch {
		case c.Kind == actor.SessionRemoved:
			front.Removed(c.ID)
		case c.Kind == actor.SessionCreated && c.Origin != pi.Origin:
			front.Changed()
		}
	})
	s.onClose(func(context.Context) error { stop(); return nil })

	// 6. Who speaks roost's own, and Cursor's.
	api := control.New(control.Options{
		Engine: watchedBy(&s.metrics, engine, "roost"), Models: models.describe, Blobs: blobs, Version: s.opt.Version, ServerID: id,
		DefaultModel: models.first, Heartbeat: cfg.Limits.Heartbeat, Stuck: stuckClients(&s.metrics, "roost"), Logger: s.log,
	})
	conversations := s.cursor(engine, models, blobs)

	// 7. What was going on goes on.
	if err := engine.Start(ctx); err != nil {
		return err
	}
	s.background(s.keeper(engine, log, dir.Join("outputs")).run)

	// 8. Doors open. At the end conversations are told before their connections are gone.
	if err := s.listen(front, s.routes(api, front, conversations), dir); err != nil {
		return err
	}
	s.onClose(func(context.Context) error { conversations.Close(); return nil })
	return nil
}

// background runs f until the server closes.
func (s *Server) background(f func(stop <-chan struct{})) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { f(stop) })
	s.onClose(func(context.Context) error {
		close(stop)
		running.Wait()
		return nil
	})
}

func (s *Server) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// Close stops accepting clients, ends the connections, stops what runs where it is, and
// releases the data. What was in the middle of a run goes on after the next start.
func (s *Server) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeGrace)
	defer cancel()
	var errs []error
	for _, v := range slices.Backward(s.closers) {
		errs = append(errs, v(ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// Endpoint returns where clients find the server.
func (s *Server) Endpoint() Endpoint { return s.endpoint }

// Run serves until ctx ends. It writes one line that begins with "ready" to out when clients
// can connect, and before it, if the token was made at this start, the URL that carries it.
func Run(ctx context.Context, opt Options, out io.Writer) error {
	s, err := Open(ctx, opt)
	if err != nil {
		return err
	}
	if err := s.announce(opt.DataDir); err != nil {
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	e := s.Endpoint()
	if e.NewToken && e.URL != "" {
		fmt.Fprintf(out, "open %s/#token=%s\n", e.URL, e.Token)
	}
	fmt.Fprintln(out, e.ready())
	<-ctx.Done()
	return s.Close(context.WithoutCancel(ctx))
}

func (e Endpoint) ready() string {
	words := []string{"ready"}
	for _, w := range []struct{ name, value string }{{"pi", e.Socket}, {"api", e.HTTPSocket}, {"http", e.URL}} {
		if w.value != "" {
			words = append(words, w.name+"="+w.value)
		}
	}
	return strings.Join(words, " ")
}

func (s *Server) workDir() (string, error) {
	for _, dir := range []string{s.opt.Dir, s.opt.Config.Workspace.DefaultDir} {
		if dir != "" {
			return dir, nil
		}
	}
	return os.Getwd()
}

// serverID names this data directory to clients, for ever.
func serverID(dir *datadir.Dir) (string, error) {
	path := dir.Join("server-id")
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	id := ulid.Make().String()
	return id, datadir.Replace(path, []byte(id+"\n"))
}

// images shows the images of the blob store to clients.
func images(blobs blob.Store) func(session.Image) ([]byte, bool) {
	return func(i session.Image) ([]byte, bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		data, err := blobs.Get(ctx, i.Blob)
		return data, err == nil
	}
}

// isClosed reports whether a listener or server has merely been closed.
func isClosed(err error) bool { return err == nil || errors.Is(err, net.ErrClosed) }
