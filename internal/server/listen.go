package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/guard"
	"github.com/roost-dev/roost/internal/pi"
)

// shutdownGrace is how long answered requests may take to leave.
const shutdownGrace = 2 * time.Second

// routes is everything that is reachable over HTTP.
func (s *Server) routes(api *control.Server, front *pi.Server, conversations *cursor.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(control.Pattern, api.Handler())
	mux.Handle(control.EventsPattern, api.Handler())
	mux.Handle("/pi/v1", front.WebSocket())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET "+metricsPath, &s.metrics)
	conversations.Register(mux)
	return guard.LimitBody(s.opt.Config.Limits.BodyBytes, mux, cursor.LargePaths()...)
}

// listen opens the doors: the Unix sockets, which the file system guards, and the HTTP
// listener, which the guard does.
func (s *Server) listen(front *pi.Server, routes http.Handler, dir *datadir.Dir) error {
	if s.opt.Socket != "" {
		if err := s.listenPi(front); err != nil {
			return err
		}
		path := s.opt.Socket + ".http"
		l, err := pi.ListenUnix(path)
		if err != nil {
			return err
		}
		s.serveHTTP(l, guard.AccessLog(s.log, routes))
		s.endpoint.HTTPSocket = path
	}
	if s.opt.Listen == "" {
		return nil
	}
	return s.listenTCP(routes, dir)
}

func (s *Server) listenPi(front *pi.Server) error {
	l, err := pi.ListenUnix(s.opt.Socket)
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := front.Serve(l); !isClosed(err) {
			s.log.Error("socket failed", slog.Any("error", err))
		}
	})
	s.onClose(func(context.Context) error {
		err := l.Close()
		serving.Wait()
		return err
	})
	s.endpoint.Socket = s.opt.Socket
	return nil
}

func (s *Server) listenTCP(routes http.Handler, dir *datadir.Dir) error {
	cfg := s.opt.Config
	secure := s.opt.TLSCert != ""
	if err := guard.CheckListen(s.opt.Listen, secure, cfg.HTTP.InsecureBind); err != nil {
		return err
	}
	token, created, err := guard.LoadToken(dir.Path())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.opt.Listen)
	if err != nil {
		return err
	}
	options := guard.Options{
		Port: l.Addr().(*net.TCPAddr).Port, Token: token, Hosts: cfg.HTTP.Hosts, Origins: cfg.HTTP.Origins, Open: []string{"/healthz"},
		Keep: cursor.TokenPaths(),
	}
	for _, t := range cfg.HTTP.Tokens {
		options.Clients = append(options.Clients, guard.Client{Name: t.Name, SHA256: t.SHA256})
	}
	g, err := guard.New(options)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.serveHTTP(l, guard.AccessLog(s.log, g.Handler(routes)))
	scheme := "http"
	if secure {
		scheme = "https"
	}
	s.endpoint.URL = scheme + "://" + l.Addr().String()
	s.endpoint.Token, s.endpoint.NewToken = token.Reveal(), created
	return nil
}

// serveHTTP serves HTTP/1.1 and HTTP/2, with TLS if the options say so and the listener is
// not a Unix socket. Streams end when the server closes.
func (s *Server) serveHTTP(l net.Listener, h http.Handler) {
	ctx, cancel := context.WithCancel(context.Background())
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: h, Protocols: protocols, ReadHeaderTimeout: guard.HeaderTimeout, IdleTimeout: guard.IdleTimeout,
		MaxHeaderBytes: guard.MaxHeaderBytes, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		var err error
		if s.opt.TLSCert != "" && l.Addr().Network() == "tcp" {
			err = server.ServeTLS(l, s.opt.TLSCert, s.opt.TLSKey)
		} else {
			err = server.Serve(l)
		}
		if !isClosed(err) && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("listener failed", slog.String("address", l.Addr().String()), slog.Any("error", err))
		}
	})
	s.onClose(func(closing context.Context) error {
		cancel()
		closing, done := context.WithTimeout(closing, shutdownGrace)
		defer done()
		err := server.Shutdown(closing)
		if err != nil {
			err = server.Close()
		}
		serving.Wait()
		return err
	})
}
