package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// crowd is clients with a session each.
type crowd []*client

// gather connects clients and makes their sessions.
func (h *home) gather(ctx context.Context, n int) (crowd, error) {
	c := make(crowd, n)
	err := parallel(n, func(i int) (err error) {
		if c[i], err = dial(ctx, h.socket()); err != nil {
			return err
		}
		return c[i].create()
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c crowd) close() {
	for _, client := range c {
		if client != nil {
			client.close()
		}
	}
}

// prompt has every client order at the same time.
func (c crowd) prompt(o order) (turns, error) {
	return together(len(c), func(i int) (*turn, error) { return c[i].prompt(o) })
}

// runMany makes n requests to the provider at the same time.
func (d *direct) runMany(ctx context.Context, n int, o order) (turns, error) {
	return together(n, func(int) (*turn, error) { return d.run(ctx, o) })
}

// turns is what came of prompts that were made at the same time.
type turns []*turn

func together(n int, f func(i int) (*turn, error)) (turns, error) {
	ts := make(turns, n)
	err := parallel(n, func(i int) (err error) {
		ts[i], err = f(i)
		return err
	})
	return ts, err
}

// parallel runs f for each number below n and joins the errors.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// delays returns those of all tokens but the first of each answer, which has a figure of its
// own, in milliseconds.
func (ts turns) delays() []float64 {
	var all []float64
	for _, t := range ts {
		for _, d := range t.answer.delays[1:] {
			all = append(all, ms(d))
		}
	}
	return all
}

func (ts turns) tokens() int {
	n := 0
	for _, t := range ts {
		n += t.answer.tokens
	}
	return n
}

// rate is the tokens per second, from the first prompt to the last token.
func (ts turns) rate() float64 {
	var from, to time.Time
	for _, t := range ts {
		if from.IsZero() || t.sent.Before(from) {
			from = t.sent
		}
		if t.last.After(to) {
			to = t.last
		}
	}
	return float64(ts.tokens()) / to.Sub(from).Seconds()
}
