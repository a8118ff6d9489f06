package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// measure is one measurement, which gives some rows of the table.
type measure struct {
	name string
	run  func(context.Context, *lab) ([]row, error)
}

var measures = []measure{
	{"stream", measureStream},
	{"first", measureFirst},
	{"burst", measureBurst},
	{"crowd", measureCrowd},
	{"memory", measureMemory},
	{"stuck", measureStuck},
	{"start", measureStart},
	{"recover", measureRecover},
	{"attach", measureAttach},
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == providerCommand {
		err = runProvider(os.Stdin, os.Stdout)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures and writes the table to out.
func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	l := &lab{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(diagnostics)
	flags.StringVar(&l.roost, "roost", "bin/roost", "the binary to be measured")
	flags.StringVar(&l.dir, "dir", "", "where data goes; the binary's directory when empty, so that it is a real disk")
	flags.BoolVar(&l.quick, "quick", false, "less exact, within half a minute")
	var soaking soakOptions
	flags.DurationVar(&soaking.duration, "soak", 0, "instead of measuring, put load on one server for so long and see whether it stays as it is")
	flags.IntVar(&soaking.sessions, "sessions", 200, "of the soak")
	flags.Float64Var(&soaking.rate, "rate", 4, "turns a second of the soak, in all")
	only := flags.String("only", "", "comma-separated measurements of "+names())
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if l.roost, err = filepath.Abs(l.roost); err != nil {
		return err
	}
	if l.dir == "" {
		l.dir = filepath.Dir(l.roost)
	}
	if err := describe(out, l.dir); err != nil {
		return err
	}
	if err := l.startProvider(ctx); err != nil {
		return err
	}
	defer l.provider.kill()
	defer l.direct.close()
	if soaking.duration > 0 {
		return l.soak(ctx, soaking, out)
	}
	return l.measure(ctx, chosen, out)
}

func (l *lab) startProvider(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if l.provider, err = startProcess(ctx, "http://", self, providerCommand); err != nil {
		return err
	}
	l.url = l.provider.line
	l.direct = newDirect(l.url)
	return nil
}

// measure runs measurements one after the other. One that fails does not keep the others.
func (l *lab) measure(ctx context.Context, chosen []measure, out io.Writer) error {
	began := time.Now()
	header(out)
	var errs []error
	for _, m := range chosen {
		rows, err := m.run(ctx, l)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
			rows = []row{{measure: m.name, budget: "–", roost: "–", direct: "–", verdict: "**failed**"}}
		}
		write(out, rows)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintf(out, "\nMeasured in %s.\n", time.Since(began).Round(time.Second))
	return errors.Join(errs...)
}

func names() string {
	var all []string
	for _, m := range measures {
		all = append(all, m.name)
	}
	return strings.Join(all, ", ")
}

// choose returns the measurements of a comma-separated list, all of them for an empty one.
func choose(list string) ([]measure, error) {
	if list == "" {
		return measures, nil
	}
	var chosen []measure
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(measures, func(m measure) bool { return m.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q; there are %s", name, names())
		}
		chosen = append(chosen, measures[i])
	}
	return chosen, nil
}
