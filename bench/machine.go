package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// describe says what was measured on.
func describe(out io.Writer, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	sync, err := syncTime(dir)
	if err != nil {
		return err
	}
	cpu := "unknown processor"
	for line := range strings.Lines(file("/proc/cpuinfo")) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	fmt.Fprintf(out, "%d cores (%s), Linux %s, %s with %s for a write and fsync, %s. "+
		"At the start the load was %s, and a sleep of 1 ms took %s at p99: much more than 2 ms means that others use the machine.\n\n",
		runtime.NumCPU(), cpu, strings.TrimSpace(file("/proc/sys/kernel/osrelease")),
		fileSystem(file("/proc/mounts"), dir), sync.Round(10*time.Microsecond), runtime.Version(),
		firstWord(file("/proc/loadavg")), sleepTime().Round(10*time.Microsecond))
	return nil
}

// file returns the text of a file, "" if it cannot be read.
func file(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// sleepTime is how long a sleep of 1 ms can take.
func sleepTime() time.Duration {
	var took []time.Duration
	for range 300 {
		began := time.Now()
		time.Sleep(time.Millisecond)
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.99)
}

// syncTime is how long it usually takes to bring 4 KiB onto the disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "bench-sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range 50 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}
