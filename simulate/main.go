// Program simulate runs the simulation of internal/simulation for many seeds, compiled for
// WebAssembly: the whole program then has one thread, and its clock and its random numbers are those
// that this host gives it, so that the same seeds do the same thing each time, down to the order in
// which goroutines run.
//
//	go run ./simulate -seeds 0-1999
//	go run ./simulate -seeds 1200-1299 -tell 1234   # the story of one seed
//
// Seeds run in groups, each in an instance of its own whose chance follows from the group's first
// seed. A group begins at a multiple of its size, so a seed that fails does so again when its group
// is run up to it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// group is how many seeds share an instance.
const group = 100

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

type options struct {
	from, to uint64
	tell     string
	steps    int
	workers  int
}

func parse() (options, error) {
	var o options
	seeds := flag.String("seeds", "0-1999", "the seeds to run: one, or from-to")
	flag.StringVar(&o.tell, "tell", "", "print the story of this seed")
	flag.IntVar(&o.steps, "steps", 25, "steps of each seed")
	flag.IntVar(&o.workers, "workers", 2, "groups that run side by side")
	flag.Parse()
	first, last, many := strings.Cut(*seeds, "-")
	if !many {
		last = first
	}
	var err error
	if o.from, err = strconv.ParseUint(first, 10, 64); err == nil {
		o.to, err = strconv.ParseUint(last, 10, 64)
	}
	if err != nil || o.to < o.from || o.workers < 1 {
		return o, errors.New("seeds are one number or two with a dash between them, and there is at least one worker")
	}
	return o, nil
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "simulate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	code, err := build(ctx, filepath.Join(dir, "simulation.wasm"))
	if err != nil {
		return err
	}
	machine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer func() { _ = machine.Close(ctx) }()
	wasi_snapshot_preview1.MustInstantiate(ctx, machine)
	program, err := machine.CompileModule(ctx, code)
	if err != nil {
		return fmt.Errorf("compile the simulation: %w", err)
	}
	s := &simulator{machine: machine, program: program, options: o, dir: dir}
	began := time.Now()
	failed := s.all(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n := o.to - o.from + 1
	fmt.Printf("simulated %d seeds (%d to %d) in %v, failed: %d\n", n, o.from, o.to, time.Since(began).Round(time.Second), failed)
	if failed > 0 {
		return errors.New("seeds failed")
	}
	return nil
}

// build compiles the test of internal/simulation.
func build(ctx context.Context, path string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", path, "./internal/simulation")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the simulation: %w\n%s", err, out)
	}
	return os.ReadFile(path)
}

type simulator struct {
	options
	machine wazero.Runtime
	program wazero.CompiledModule
	dir     string
}

// all runs every group, and returns how many seeds failed.
func (s *simulator) all(ctx context.Context) int {
	groups := make(chan uint64)
	var mu sync.Mutex
	failed := 0
	var workers sync.WaitGroup
	for range s.workers {
		workers.Go(func() {
			for first := range groups {
				out, n := s.group(ctx, first)
				mu.Lock()
				failed += n
				_, _ = io.WriteString(os.Stdout, out)
				mu.Unlock()
			}
		})
	}
	for first := s.from - s.from%group; first <= s.to && ctx.Err() == nil; first += group {
		groups <- first
	}
	close(groups)
	workers.Wait()
	return failed
}

// group runs the seeds of one group, and returns what there is to say and how many failed. The seeds
// of a group that come before those that are wanted run too.
func (s *simulator) group(ctx context.Context, first uint64) (string, int) {
	last := min(first+group-1, s.to)
	var chance [32]byte
	copy(chance[:], strconv.FormatUint(first, 10))
	var out strings.Builder
	args := []string{"simulation", "-test.run=TestSeeds", "-test.timeout=0", fmt.Sprintf("-seeds=%d-%d", first, last), "-steps=" + strconv.Itoa(s.steps)}
	if s.tell != "" {
		args = append(args, "-tell="+s.tell)
	}
	home := filepath.Join(s.dir, strconv.FormatUint(first, 10))
	if err := os.MkdirAll(filepath.Join(home, "tmp"), 0o700); err != nil {
		return err.Error(), 1
	}
	now := new(clock)
	var to io.Writer = &out
	if s.tell != "" {
		to = io.MultiWriter(os.Stdout, &out)
	}
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithEnv("TMPDIR", "/tmp").WithEnv("GOGC", "800").
		WithStdout(to).WithStderr(to).WithRandSource(rand.NewChaCha8(chance)).WithNanotime(now.read, 1).WithNanosleep(now.sleep).
		WithFSConfig(wazero.NewFSConfig().WithDirMount(home, "/"))
	instance, err := s.machine.InstantiateModule(ctx, s.program, config)
	if instance != nil {
		_ = instance.Close(ctx)
	}
	_ = os.RemoveAll(home)
	exit, _ := errors.AsType[*sys.ExitError](err)
	if err == nil || exit != nil && exit.ExitCode() == 0 {
		return "", 0
	}
	failed := 0
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.Contains(line, "simulation_test.go") && strings.Contains(line, ": seed ") {
			failed++
		}
	}
	return fmt.Sprintf("%s%v\n", out.String(), err), max(1, failed)
}

// clock goes on by a microsecond each time it is read, and while the program sleeps. The simulation's
// own time is another one; what reads this is Go's scheduler and its collector.
type clock struct{ now int64 }

func (c *clock) read() int64 {
	c.now += 1000
	return c.now
}

func (c *clock) sleep(ns int64) { c.now += max(ns, 0) }
