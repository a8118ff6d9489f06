package guard

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// maxPath bounds the path in a log record, in bytes.
const maxPath = 200

// entry is what a Guard adds to the log record of a request.
type entry struct {
	client  string
	refused string
	quiet   bool // over the limit of refusals that are logged
}

type entryKey struct{}

func accepted(r *http.Request, client string) {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok {
		e.client = client
	}
}

func refused(r *http.Request, why string, quiet bool) {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok {
		e.refused, e.quiet = why, quiet
	}
}

// AccessLog returns a handler that logs each request of next when it ends: method, path,
// status, bytes, duration, remote address and the client's name. Queries, headers and
// bodies are never logged, since they can hold secrets. It goes around a [Guard], whose
// refusals it logs as warnings, a bounded number of them; it works without one.
func AccessLog(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entry{}
		rec := &recorder{ResponseWriter: w}
		began := time.Now()
		defer func() { // also when next panics
			if !e.quiet {
				logRequest(log, r, e, rec, time.Since(began))
			}
		}()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)))
	})
}

func logRequest(log *slog.Logger, r *http.Request, e *entry, rec *recorder, took time.Duration) {
	path := r.URL.Path
	if len(path) > maxPath {
		path = path[:maxPath]
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("path", path),
		slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes),
		slog.Duration("took", took),
		slog.String("remote", r.RemoteAddr),
	}
	if e.client != "" {
		attrs = append(attrs, slog.String("client", e.client))
	}
	level := slog.LevelInfo
	if e.refused != "" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("refused", e.refused))
	}
	log.LogAttrs(r.Context(), level, "request", attrs...)
}

// recorder notes what a handler answers. A status of 0 means that it answered nothing.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush sends what was written. Streaming handlers look for this method.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush() // a writer that cannot flush has nothing to hold back
}

// Hijack takes over the connection, which WebSockets need.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil && r.status == 0 {
		r.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}
