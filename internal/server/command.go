package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/internal/config"
)

// Start is what a command line says of a server. What is empty is left to the configuration
// and its defaults.
type Start struct {
	Config string // path of the configuration file
	Data   string // data directory
	Socket string // path of the Unix socket
	Listen string // address of the HTTP listener
}

// endpointFile, in the data directory, holds the address of roost's own API while a server
// runs: "unix:PATH" or a URL.
const endpointFile = "endpoint"

// options reads the configuration and fills in the defaults.
func (s Start) options(version string, log io.Writer) (Options, error) {
	cfg, err := s.config()
	if err != nil {
		return Options{}, err
	}
	opt := Options{Config: cfg, DataDir: s.Data, Socket: s.Socket, Listen: s.Listen, Version: version}
	if opt.DataDir == "" {
		opt.DataDir = config.DefaultDataDir()
	}
	if opt.DataDir, err = filepath.Abs(opt.DataDir); err != nil {
		return Options{}, err
	}
	if opt.Socket == "" {
		opt.Socket = config.DefaultSocket(opt.DataDir)
	}
	handler := &slog.HandlerOptions{Level: cfg.Log.Level}
	switch cfg.Log.Format {
	case config.LogJSON:
		opt.Logger = slog.New(slog.NewJSONHandler(log, handler))
	case config.LogText:
		opt.Logger = slog.New(slog.NewTextHandler(log, handler))
	}
	return opt, nil
}

// config reads the file that was named, else the one at the usual place, else the environment.
func (s Start) config() (*config.Config, error) {
	if s.Config != "" {
		return config.Load(s.Config)
	}
	cfg, err := config.Load(config.DefaultPath())
	if errors.Is(err, fs.ErrNotExist) {
		return config.FromEnv(os.Getenv)
	}
	return cfg, err
}

// Serve runs a server until ctx ends. It writes its addresses to out and its log to log.
func (s Start) Serve(ctx context.Context, version string, out, log io.Writer) error {
	opt, err := s.options(version, log)
	if err != nil {
		return err
	}
	return Run(ctx, opt, out)
}

// Embedded starts a server for one command in this process. It returns the address of
// roost's own API and a function that stops the server.
func (s Start) Embedded(ctx context.Context, version string) (address string, stop func(), err error) {
	opt, err := s.options(version, io.Discard)
	if err != nil {
		return "", nil, err
	}
	opt.Listen = ""
	server, err := Open(ctx, opt)
	if err != nil {
		return "", nil, err
	}
	return server.endpoint.api(), func() { _ = server.Close(context.WithoutCancel(ctx)) }, nil
}

// api is the address of roost's own API as clients of this machine use it.
func (e Endpoint) api() string {
	if e.HTTPSocket != "" {
		return "unix:" + e.HTTPSocket
	}
	return e.URL
}

// announce lets clients on this machine find the server.
func (s *Server) announce(dataDir string) error {
	path := filepath.Join(dataDir, endpointFile)
	if err := os.WriteFile(path, []byte(s.endpoint.api()+"\n"), 0o600); err != nil {
		return err
	}
	s.onClose(func(context.Context) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the address of the server: %w", err)
		}
		return nil
	})
	return nil
}
