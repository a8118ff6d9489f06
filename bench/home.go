package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lab is what every measurement needs. It is safe for concurrent use.
type lab struct {
	roost    string // the binary
	dir      string // where data goes
	quick    bool
	provider *process
	url      string // of the provider
	direct   *direct
}

// pick returns how often something is done.
func (l *lab) pick(quick, full int) int {
	if l.quick {
		return quick
	}
	return full
}

// home is a data directory, its configuration, and where its server listens.
type home struct {
	lab     *lab
	dir     string
	sockets string
}

const configText = `providers:
  bench:
    api: openai-chat
    base_url: %s/v1
    models:
      - id: ` + modelID + `
        context_window: 100000000
default_model: bench/` + modelID + `
workspace: {default_dir: %q}
pi: {prompt_response: accepted}
limits: {idle_unload: %s}
log: {level: warn}
`

// newHome makes a home whose sessions leave memory when they were idle for so long.
func (l *lab) newHome(unload time.Duration) (*home, error) {
	h := &home{lab: l}
	var err error
	if h.dir, err = os.MkdirTemp(l.dir, "bench-"); err != nil {
		return nil, err
	}
	// A path of a socket is short, so it is apart from the data.
	if h.sockets, err = os.MkdirTemp("", "rb"); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	text := fmt.Sprintf(configText, l.url, h.dir, unload)
	if err := errors.Join(os.WriteFile(h.config(), []byte(text), 0o600), os.Mkdir(h.data(), 0o700)); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

func (h *home) remove() error {
	return errors.Join(os.RemoveAll(h.dir), os.RemoveAll(h.sockets))
}

func (h *home) config() string { return filepath.Join(h.dir, "config.yaml") }
func (h *home) data() string   { return filepath.Join(h.dir, "data") }
func (h *home) socket() string { return filepath.Join(h.sockets, "s") }

// start starts a server on the home.
func (h *home) start(ctx context.Context) (*process, error) {
	return startProcess(ctx, "ready", h.lab.roost, "serve",
		"--config", h.config(), "--data", h.data(), "--socket", h.socket(), "--listen", "127.0.0.1:0")
}

// with runs f with a server on an empty home, and removes both.
func (l *lab) with(ctx context.Context, f func(h *home, server *process) error) error {
	h, err := l.newHome(time.Minute)
	if err != nil {
		return err
	}
	return errors.Join(h.serve(ctx, f), h.remove())
}

// serve runs f with a server.
func (h *home) serve(ctx context.Context, f func(h *home, server *process) error) error {
	server, err := h.start(ctx)
	if err != nil {
		return err
	}
	defer server.kill()
	if err := f(h, server); err != nil {
		return errors.Join(err, said(server))
	}
	return nil
}

// said is what a server wrote on its standard error, once it has ended.
func said(server *process) error {
	server.kill()
	if text := server.errors.String(); text != "" {
		return fmt.Errorf("the server says: %s", text)
	}
	return nil
}
