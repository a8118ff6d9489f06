package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/server"
)

// The benchmarks run the server in this process, so that -cpuprofile and -memprofile show
// where its time and memory go. The clients are in the profile too (-ignore='bench\.'); the
// provider is not.

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == providerCommand {
		if err := runProvider(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// open starts a provider and, in this process, a server, on a home that prepare may fill.
func open(b testing.TB, prepare ...func(*home) error) *home {
	b.Helper()
	l := &lab{dir: b.TempDir()}
	if err := l.startProvider(b.Context()); err != nil {
		b.Fatal(err)
	}
	h, err := l.newHome(time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range prepare {
		if err := f(h); err != nil {
			b.Fatal(err)
		}
	}
	cfg, err := config.Load(h.config())
	if err != nil {
		b.Fatal(err)
	}
	s, err := server.Open(b.Context(), server.Options{Config: cfg, DataDir: h.data(), Socket: h.socket()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		// The benchmark's own context has ended.
		if err := errors.Join(s.Close(context.WithoutCancel(b.Context())), h.remove()); err != nil {
			b.Error(err)
		}
		l.direct.close()
		l.provider.kill()
	})
	return h
}

// benchmarkTurns has n sessions answer at once; an operation is one such round.
func benchmarkTurns(b *testing.B, n int, o order) {
	b.Helper()
	c, err := open(b).gather(b.Context(), n)
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	b.ReportAllocs()
	var rates, delays []float64
	for b.Loop() {
		ts, err := c.prompt(o)
		if err != nil {
			b.Fatal(err)
		}
		rates, delays = append(rates, ts.rate()), append(delays, ts.delays()...)
	}
	b.ReportMetric(median(rates), "tokens/s")
	b.ReportMetric(quantile(delays, 0.99), "p99-ms")
}

func BenchmarkBurst(b *testing.B) { benchmarkTurns(b, 50, order{tokens: 20_000}) }

func BenchmarkSteady(b *testing.B) { benchmarkTurns(b, 50, order{tokens: 4000, rate: 2000}) }

func BenchmarkCrowd(b *testing.B) { benchmarkTurns(b, 200, order{tokens: 500, rate: 50}) }

func BenchmarkAttach(b *testing.B) {
	h := open(b, func(h *home) error { return h.long(b.Context(), "long", 10_000) })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.attach(b.Context(), "long"); err != nil {
			b.Fatal(err)
		}
	}
}
