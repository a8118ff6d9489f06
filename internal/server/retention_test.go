package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// shelf is an engine of which a keeper takes sessions away.
type shelf struct {
	metas []session.Meta // the most recently used first
	busy  session.ID     // has begun to run since it was listed
	stuck session.ID     // cannot be deleted

	mu      sync.Mutex
	deleted []session.ID
}

// gone returns what was deleted.
func (s *shelf) gone() []session.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

func (s *shelf) List(context.Context) iter.Seq2[session.Meta, error] {
	return func(yield func(session.Meta, error) bool) {
		for _, m := range s.metas {
			if !slices.Contains(s.gone(), m.ID) && !yield(m, nil) {
				return
			}
		}
	}
}

func (s *shelf) State(_ context.Context, id session.ID) (*session.State, error) {
	state := &session.State{Head: session.Head{ID: id}}
	if id == s.busy {
		state.Run = &session.Run{}
	}
	return state, nil
}

func (s *shelf) Delete(_ context.Context, id session.ID) error {
	if id == s.stuck {
		return errors.New("it is stuck")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, id)
	return nil
}

// used makes sessions that were used so long ago, one of which runs, each of 1 MiB.
func used(now time.Time, ago ...time.Duration) *shelf {
	s := &shelf{}
	for i, d := range ago {
		s.metas = append(s.metas, session.Meta{ID: session.ID(fmt.Sprintf("s%d", i)), UpdatedAt: now.Add(-d).UnixMilli(), Active: i == 3})
	}
	return s
}

func TestRetention(t *testing.T) {
	now := time.Now()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		limits config.Retention
		want   string
	}{
		"all are kept": {config.Retention{}, "[]"},
		"number":       {config.Retention{Sessions: 2}, "[s5 s4 s2]"}, // s3 runs
		"number 1":     {config.Retention{Sessions: 1}, "[s5 s4 s2]"}, // s1 was used a moment ago
		"age":          {config.Retention{Age: 4 * day}, "[s5 s4]"},
		"size":         {config.Retention{Size: 4 << 20}, "[s5 s4]"},
		"age and size": {config.Retention{Age: 5*day + time.Hour, Size: 100 << 20}, "[s5]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := used(now, 0, time.Minute, 2*day, 3*day, 5*day, 6*day)
			var log bytes.Buffer
			k := &keeper{
				limits: c.limits, engine: s, now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil)),
				size: func(context.Context, session.ID) (int64, error) { return 1 << 20, nil },
			}
			k.once(t.Context())
			if got := fmt.Sprint(s.gone()); got != c.want {
				t.Errorf("deleted %s, want %s", got, c.want)
			}
			if n := strings.Count(log.String(), "session removed"); n != len(s.deleted) {
				t.Errorf("%d of %d removals are logged:\n%s", n, len(s.deleted), log.String())
			}
			k.once(t.Context())
			if got := fmt.Sprint(s.gone()); got != c.want {
				t.Errorf("a second time: %s", got)
			}
		})
	}
}

func TestRetentionLeavesWhatIsUsed(t *testing.T) {
	now := time.Now()
	s := used(now, 48*time.Hour, 49*time.Hour, 50*time.Hour)
	s.busy, s.stuck = "s2", "s1"
	var log bytes.Buffer
	k := &keeper{
		limits: config.Retention{Age: time.Hour}, engine: s, now: func() time.Time { return now },
		log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	k.once(t.Context())
	if got := fmt.Sprint(s.gone()); got != "[s0]" || !strings.Contains(log.String(), "it is stuck") {
		t.Errorf("deleted %s\n%s", got, log.String())
	}
}

func TestRetentionRunsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := used(time.Now(), 2*time.Hour, 30*time.Minute)
		k := &keeper{limits: config.Retention{Age: time.Hour}, engine: s, now: time.Now, log: slog.New(slog.DiscardHandler)}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { k.run(stop); close(done) }()
		time.Sleep(retentionFirst + time.Second) // of the bubble's clock
		synctest.Wait()
		if got := fmt.Sprint(s.gone()); got != "[s0]" {
			t.Errorf("after the first look: %s", got)
		}
		time.Sleep(retentionEvery)
		synctest.Wait()
		if got := fmt.Sprint(s.gone()); got != "[s0 s1]" {
			t.Errorf("after the second look: %s", got)
		}
		close(stop)
		<-done
	})
}

func TestSizeOfASession(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "s1"), 0o700), os.WriteFile(filepath.Join(dir, "s1", "bash-1.log"), make([]byte, 1000), 0o600)); err != nil {
		t.Fatal(err)
	}
	size := sizeWith(dir, func(_ context.Context, id session.ID) (int64, error) {
		if id == "gone" {
			return 0, eventlog.ErrNotFound
		}
		return 24, nil
	})
	for id, want := range map[session.ID]int64{"s1": 1024, "s2": 24} {
		if got, err := size(t.Context(), id); got != want || err != nil {
			t.Errorf("%s: %d, %v", id, got, err)
		}
	}
	if _, err := size(t.Context(), "gone"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Error(err)
	}
}
