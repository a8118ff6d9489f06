package sqlitelog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

func begin(b *testing.B, log eventlog.Log, id session.ID) {
	b.Helper()
	if err := log.Append(b.Context(), id, 0, []session.Record{{Seq: 1, At: 1, Event: session.Created{ID: id, Cwd: "/work"}}}); err != nil {
		b.Fatal(err)
	}
}

func token(seq session.Seq) []session.Record {
	return []session.Record{{Seq: seq, At: 1_790_000_000_000, Event: session.Delta{Text: " a token or two of text"}}}
}

// report adds the 99th percentile and the longest of some durations to a benchmark's figures.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*50/100].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

// BenchmarkAppend1 is one session that appends one delta after the other.
func BenchmarkAppend1(b *testing.B) {
	log := open(b, b.TempDir())
	begin(b, log, "a")
	b.ReportAllocs()
	var took []time.Duration
	for seq := session.Seq(1); b.Loop(); seq++ {
		start := time.Now()
		if err := log.Append(b.Context(), "a", seq, token(seq+1)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkAppend64 is 64 sessions that append at the same time; an operation is one append.
func BenchmarkAppend64(b *testing.B) {
	log := open(b, b.TempDir())
	const writers = 64
	for i := range writers {
		begin(b, log, session.ID(fmt.Sprintf("s%d", i)))
	}
	took := make([][]time.Duration, writers)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range writers {
		id := session.ID(fmt.Sprintf("s%d", i))
		wg.Go(func() {
			for seq := session.Seq(1); seq <= session.Seq(1+b.N/writers); seq++ {
				start := time.Now()
				if err := log.Append(b.Context(), id, seq, token(seq+1)); err != nil {
					b.Error(err)
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	report(b, slices.Concat(took...))
}

// BenchmarkRestore10kItems opens a session of 10,000 items.
func BenchmarkRestore10kItems(b *testing.B) {
	log := open(b, b.TempDir())
	begin(b, log, "a")
	items := make([]session.Item, 10_000)
	for i := range items {
		items[i] = &session.Assistant{
			ID: session.ItemID(fmt.Sprintf("a1-%d", i)), Status: session.Complete,
			Blocks: []session.Block{session.Text{Text: strings.Repeat("some text ", 50)}},
		}
	}
	if err := log.Compact(b.Context(), "a", eventlog.Snapshot{Head: session.Head{ID: "a", Seq: 1}, Items: items}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		state, err := eventlog.Restore(b.Context(), log, "a")
		if err != nil || len(state.Settled) != len(items) {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen10kSessions opens a log of 10,000 sessions and asks which are active.
func BenchmarkOpen10kSessions(b *testing.B) {
	dir := b.TempDir()
	log := open(b, dir)
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := range 200 {
				id := session.ID(fmt.Sprintf("s%d-%d", w, i))
				records := []session.Record{{Seq: 1, At: 1, Event: session.Created{ID: id, Cwd: "/work"}}}
				for seq := session.Seq(2); seq < 20; seq++ {
					records = append(records, token(seq)...)
				}
				if i%100 == 0 {
					records[1].Event = session.RunStarted{Run: 1, Item: "u1"}
				}
				if err := log.Append(b.Context(), id, 0, records); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		log, err := sqlitelog.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		active, err := log.Active(b.Context())
		if err != nil || len(active) != 100 {
			b.Fatal(len(active), err)
		}
		b.StopTimer()
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkList10k lists 10,000 sessions.
func BenchmarkList10k(b *testing.B) {
	log := open(b, b.TempDir())
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := range 200 {
				id := session.ID(fmt.Sprintf("s%d-%d", w, i))
				if err := log.Append(b.Context(), id, 0, []session.Record{{Seq: 1, At: int64(i), Event: session.Created{ID: id, Cwd: "/work"}}}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range log.List(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}
