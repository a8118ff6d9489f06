package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sample is how the server is at one moment. Sizes are in bytes.
type sample struct {
	at       time.Duration // since the load began
	resident float64
	metrics  map[string]float64
	blobs    float64       // of files beside the database
	live     float64       // text in sessions that are there
	peak     float64       // the most that live has been
	written  float64       // text, ever
	turns    float64       // ever
	server   time.Duration // processor time of the server
	cpu      time.Duration // and of everyone
}

// sample looks at the server.
func (s *soak) sample(ctx context.Context) (sample, error) {
	live, peak := s.lives.content()
	x := sample{
		live: float64(live), peak: float64(peak), written: float64(s.lives.written.Load()), turns: float64(s.lives.turns.Load()),
	}
	m, err := s.server.memory()
	if err != nil {
		return x, err
	}
	x.resident = float64(m.resident)
	if x.server, err = s.server.cpu(); err != nil {
		return x, err
	}
	others, err := s.home.lab.provider.cpu()
	if err != nil {
		return x, err
	}
	self, err := parseCPU(file("/proc/self/stat"))
	if err != nil {
		return x, err
	}
	x.cpu = x.server + others + self
	for _, dir := range []string{"blobs", "outputs"} {
		x.blobs += sizeOf(filepath.Join(s.home.data(), dir))
	}
	x.metrics, err = scrape(ctx, s.url, s.token)
	return x, err
}

// sizeOf adds the sizes of the files below a directory.
func sizeOf(dir string) (size float64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is being removed, or not there yet
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += float64(info.Size())
		}
		return nil
	})
	return size
}

// scrape reads the metrics of a server.
func scrape(ctx context.Context, url, token string) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Close = true // the server's connections are those of its clients
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	return parseMetrics(string(text))
}

// parseMetrics reads the samples of Prometheus' text format, by what is before the value.
func parseMetrics(text string) (map[string]float64, error) {
	all := make(map[string]float64)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := cutLast(line, " ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q", line)
		}
		all[name] = v
	}
	return all, nil
}

// sum adds the samples of one name.
func (x sample) sum(name string) (sum float64) {
	for sample, v := range x.metrics {
		if sample == name || strings.HasPrefix(sample, name+"{") {
			sum += v
		}
	}
	return sum
}

func (x sample) goroutines() float64 { return x.sum("roost_goroutines") }
func (x sample) heap() float64       { return x.sum("roost_heap_bytes") }
func (x sample) files() float64      { return x.sum("roost_open_files") }
func (x sample) database() float64   { return x.metrics[`roost_database_bytes{file="main"}`] }

// gone reports whether nothing of the clients is left.
func (x sample) gone(before sample) bool {
	return x.sum("roost_sessions") == 0 && x.sum("roost_watchers") == 0 && x.sum("roost_runs") == 0 &&
		x.heap() <= before.heap()+leftHeap && x.goroutines() <= before.goroutines()+leftGoroutines && x.files() <= before.files()+leftFiles
}

func sampleHeader(out io.Writer) {
	fmt.Fprintln(out, "| after | RSS MB | heap MB | goroutines | files | sessions | runs | watchers | db MB | WAL MB | blobs MB | text MB | turns | server CPU s |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
}

func (x sample) write(out io.Writer) {
	fmt.Fprintf(out, "| %s |", x.at.Round(time.Second))
	for _, v := range []float64{
		x.resident / 1e6, x.heap() / 1e6, x.goroutines(), x.files(), x.sum("roost_sessions"), x.sum("roost_runs"),
		x.sum("roost_watchers"), x.database() / 1e6, x.metrics[`roost_database_bytes{file="wal"}`] / 1e6, x.blobs / 1e6, x.live / 1e6,
		x.turns, x.server.Seconds(),
	} {
		fmt.Fprintf(out, " %s |", number(v))
	}
	fmt.Fprintln(out)
}
