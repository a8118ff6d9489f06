package telemetry

import (
	"context"
	"log/slog"
)

// PanicKey is the attribute of a log message about a panic that was contained.
const PanicKey = "panic"

// CountLog returns a handler that passes on to next, and counts warnings, errors and contained
// panics, also those that next does not want.
func (s *Set) CountLog(next slog.Handler) slog.Handler {
	const name, help = "roost_log_messages_total", "Messages of the server's log."
	return &logCounter{Handler: next, counts: &logCounts{
		warnings: s.Counter(name, help, "level", "warn"),
		errors:   s.Counter(name, help, "level", "error"),
		panics:   s.Counter("roost_panics_total", "Panics that ended a run, a call or a connection, and nothing else."),
	}}
}

type logCounts struct{ warnings, errors, panics *Counter }

// logCounter is a handler that counts. It is safe for concurrent use.
type logCounter struct {
	slog.Handler
	counts *logCounts
}

// Enabled reports whether a message is to be handled.
func (c *logCounter) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || c.Handler.Enabled(ctx, level)
}

// Handle counts a message and passes it on.
func (c *logCounter) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Level >= slog.LevelError:
		c.counts.errors.Inc()
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == PanicKey {
				c.counts.panics.Inc()
			}
			return a.Key != PanicKey
		})
	case r.Level >= slog.LevelWarn:
		c.counts.warnings.Inc()
	}
	if !c.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that counts likewise.
func (c *logCounter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logCounter{c.Handler.WithAttrs(attrs), c.counts}
}

// WithGroup returns a handler that counts likewise.
func (c *logCounter) WithGroup(name string) slog.Handler {
	return &logCounter{c.Handler.WithGroup(name), c.counts}
}
