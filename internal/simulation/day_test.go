package simulation

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// use is what a server needs when nobody is there and nothing is stored.
type use struct {
	goroutines int
	heap       uint64 // bytes
}

// TestDay lets a server work for a day, in one process but for the crashes that are a part of it.
// Each hour clients come, do what they do in every simulation, and go, and their sessions are deleted;
// what the server needs then must not grow.
func TestDay(t *testing.T) {
	dir := t.TempDir()
	hours := make([]use, *day)
	failure := ""
	story := io.Discard
	if *daySeed == *tell {
		story = os.Stdout
	}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(*daySeed, dir, story)
		w.start()
		for hour := range hours {
			w.hour(hour)
			if w.failed() {
				break
			}
			hours[hour] = w.measure()
		}
		w.kill()
		w.rest.Wait()
		failure = w.failure
	})
	if failure != "" {
		t.Fatalf("seed %d: %s", *daySeed, failure)
	}
	first, last := hours[min(2, len(hours)-1)], hours[len(hours)-1] // caches are full after two hours
	fmt.Printf("simulated %d hours: goroutines %d, then %d; heap %d KiB, then %d KiB\n",
		len(hours), first.goroutines, last.goroutines, first.heap>>10, last.heap>>10)
	if last.goroutines > first.goroutines {
		t.Errorf("there are %d goroutines, and there were %d", last.goroutines, first.goroutines)
	}
	if last.heap > first.heap+first.heap/2+1<<20 {
		t.Errorf("the heap has %d bytes, and had %d", last.heap, first.heap)
	}
}

// hour is an hour with clients.
func (w *world) hour(n int) {
	w.setCalm(false)
	w.arrive(fmt.Sprint(n))
	for until := w.began.Add(time.Duration(n+1) * time.Hour); time.Now().Before(until) && !w.failed(); {
		w.step()
		time.Sleep(w.drawn(30_000)) // simulated
		w.check()
	}
	w.quiet()
	w.depart()
}

// measure deletes all sessions, without ending the process, and returns what the server still needs.
func (w *world) measure() use {
	for _, id := range w.sessions() {
		if err := w.proc.engine.Delete(context.Background(), session.ID(id)); err != nil && !w.deleted(id) {
			w.fail("delete %s: %v", id, err)
		}
	}
	log, blobs := w.log, w.blobs
	w.forget()
	w.log, w.blobs = log, blobs
	time.Sleep(time.Hour) // simulated: everything that has a time limit has passed it
	w.began = w.began.Add(time.Hour)
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{runtime.NumGoroutine(), m.HeapAlloc}
}
