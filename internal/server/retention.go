package server

import (
	"context"
	"io/fs"
	"iter"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

const (
	// retentionFirst and retentionEvery are when sessions beyond the limits are looked for.
	retentionFirst = time.Minute
	retentionEvery = time.Hour
	// unused is how long a session must not have been used before it may be deleted: whoever has
	// just left it, or has started it as a part of other work, may want to read it.
	unused = time.Hour
)

// keeper deletes the sessions that the configuration does not keep.
type keeper struct {
	limits config.Retention
	engine interface {
		List(ctx context.Context) iter.Seq2[session.Meta, error]
		State(ctx context.Context, id session.ID) (*session.State, error)
		Delete(ctx context.Context, id session.ID) error
	}
	size func(ctx context.Context, id session.ID) (int64, error)
	now  func() time.Time
	log  *slog.Logger
}

// keeper makes the one of this server.
func (s *Server) keeper(engine *actor.Engine, log *sqlitelog.Log, outputs string) *keeper {
	return &keeper{limits: s.opt.Config.Retention, engine: engine, size: sizeWith(outputs, log.Size), now: time.Now, log: s.log}
}

// tellRebuilt tells the log of the server that the index of sessions was made anew.
func (s *Server) tellRebuilt(log *sqlitelog.Log) {
	rebuilt, err := log.IndexRebuilt()
	switch {
	case err != nil:
		s.log.Error("the index of sessions was lost and made anew without those that cannot be read; run roost doctor", slog.Any("error", err))
	case rebuilt:
		s.log.Warn("the index of sessions was lost and made anew")
	}
}

// run works until stop is closed; at once when everything is kept.
func (k *keeper) run(stop <-chan struct{}) {
	if k.limits == (config.Retention{}) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	timer := time.NewTimer(retentionFirst)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		k.once(ctx)
		timer.Reset(retentionEvery)
	}
}

// once deletes what is beyond the limits now.
func (k *keeper) once(ctx context.Context) {
	gone, err := k.beyond(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.ErrorContext(ctx, "sessions cannot be listed for their removal", slog.Any("error", err))
	}
	for _, g := range gone {
		if ctx.Err() != nil {
			return
		}
		if err := k.remove(ctx, g); err != nil && ctx.Err() == nil {
			k.log.ErrorContext(ctx, "session beyond a limit cannot be removed", slog.String("session", string(g.meta.ID)), slog.Any("error", err))
		}
	}
}

// surplus is a session that is not to be kept.
type surplus struct {
	meta  session.Meta
	limit string // the setting that says so
}

// beyond returns the sessions beyond the limits, the longest unused first.
func (k *keeper) beyond(ctx context.Context) (gone []surplus, err error) {
	var count int
	var size int64
	for m, err := range k.engine.List(ctx) { // the most recently used first
		if err != nil {
			return nil, err
		}
		age := k.now().Sub(time.UnixMilli(m.UpdatedAt))
		limit := ""
		switch {
		case k.limits.Age > 0 && age > k.limits.Age:
			limit = "age"
		case k.limits.Sessions > 0 && count >= k.limits.Sessions:
			limit = "sessions"
		}
		if limit == "" && k.limits.Size > 0 {
			n, err := k.size(ctx, m.ID)
			if err != nil {
				continue // it has been deleted, or cannot be read, which is for doctor to say
			}
			if size += n; size > k.limits.Size {
				limit = "size"
			}
		}
		if limit == "" || m.Active || age < unused {
			count++
			continue
		}
		gone = append([]surplus{{m, limit}}, gone...)
	}
	return gone, nil
}

// remove deletes a session unless it has been used since it was listed.
func (k *keeper) remove(ctx context.Context, g surplus) error {
	s, err := k.engine.State(ctx, g.meta.ID)
	if err != nil {
		return err
	}
	if s.Run != nil || s.UpdatedAt > k.now().Add(-unused).UnixMilli() {
		return nil
	}
	if err := k.engine.Delete(ctx, g.meta.ID); err != nil {
		return err
	}
	k.log.InfoContext(ctx, "session removed", slog.String("session", string(g.meta.ID)), slog.String("name", g.meta.Name),
		slog.String("limit", "retention."+g.limit), slog.Time("used", time.UnixMilli(g.meta.UpdatedAt)))
	return nil
}

// sizeWith adds the outputs of a session, which are below dir, to what log says.
func sizeWith(dir string, log func(context.Context, session.ID) (int64, error)) func(context.Context, session.ID) (int64, error) {
	return func(ctx context.Context, id session.ID) (int64, error) {
		size, err := log(ctx, id)
		if err != nil {
			return 0, err
		}
		_ = filepath.WalkDir(filepath.Join(dir, string(id)), func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it has none, or they are being removed
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				size += info.Size()
			}
			return nil
		})
		return size, ctx.Err()
	}
}
