package cursor

import (
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// BenchmarkHeartbeats holds 1,000 streams open over HTTP/1.1, on which nothing but heartbeats is
// written, and reports how late these come, in ms.
func BenchmarkHeartbeats(b *testing.B) {
	const streams, every = 1000, time.Second
	links := make(chan link, streams)
	l := listen(b, newHub(hubOptions{Drive: held(links), Heartbeat: every}), 1)
	var mu sync.Mutex
	var late []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	bodies := make([]io.ReadCloser, streams)
	for i := range streams {
		id := strconv.Itoa(i)
		l.begin(b.Context(), id)
		resp := l.sse(b.Context(), id)
		if resp.status != http.StatusOK {
			b.Fatal(resp.status)
		}
		bodies[i] = resp.body
	}
	runtime.ReadMemStats(&after)
	b.ResetTimer()
	var all sync.WaitGroup
	for _, body := range bodies {
		all.Go(func() {
			reader := cursorwire.NewEnvelopeReader(body, "", 1<<20)
			if _, err := reader.Next(); err != nil {
				b.Error(err)
				return
			}
			last := time.Now()
			for range b.N {
				if _, err := reader.Next(); err != nil {
					b.Error(err)
					return
				}
				now := time.Now()
				mu.Lock()
				late = append(late, now.Sub(last)-every)
				mu.Unlock()
				last = now
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(late)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(late[len(late)/2]), "ms-late-p50")
	b.ReportMetric(ms(late[len(late)*99/100]), "ms-late-p99")
	b.ReportMetric(ms(late[len(late)-1]), "ms-late-max")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/streams/1024, "KiB/stream")
	for _, body := range bodies {
		_ = body.Close()
	}
}
