package main

import (
	"context"
	"errors"
	"time"
)

// measureMemory is the server at rest, after 200 sessions ran a turn, and once these have
// left memory again.
func measureMemory(ctx context.Context, l *lab) (rows []row, err error) {
	const sessions = 200
	const unload = 2 * time.Second
	h, err := l.newHome(unload)
	if err != nil {
		return nil, err
	}
	err = h.serve(ctx, func(h *home, server *process) error {
		idle, err := settled(ctx, server, 0)
		if err != nil {
			return err
		}
		c, err := h.gather(ctx, sessions)
		if err != nil {
			return err
		}
		defer c.close()
		if _, err := c.prompt(order{tokens: 100}); err != nil {
			return err
		}
		ran, err := settled(ctx, server, 0)
		if err != nil {
			return err
		}
		c.close()
		left, err := settled(ctx, server, unload+time.Duration(l.pick(2, 10))*time.Second)
		if err != nil {
			return err
		}
		rows = []row{
			atMost("memory, idle", 30, figure{value: mb(idle.resident), unit: "MB"}),
			atMost("memory, + after 200 sessions ran a turn, clients attached", 15, figure{value: mb(ran.resident - idle.resident), unit: "MB"}),
			noLimit("memory, + once they are idle and unloaded", figure{value: mb(left.resident - idle.resident), unit: "MB"}),
			noLimit("memory, peak", figure{value: mb(left.peak), unit: "MB"}),
		}
		return nil
	})
	return rows, errors.Join(err, h.remove())
}

// settled is the memory of a server some time after it has come to rest.
func settled(ctx context.Context, server *process, after time.Duration) (memory, error) {
	if err := pause(ctx, after); err != nil {
		return memory{}, err
	}
	if _, err := server.quiet(ctx); err != nil {
		return memory{}, err
	}
	return server.memory()
}

// measureStuck is what a reader that never reads costs: the same 20 MB with and without 20
// of them.
func measureStuck(ctx context.Context, l *lab) ([]row, error) {
	const readers = 20
	var grown []float64
	for range l.pick(1, 5) {
		without, err := flood(ctx, l, 0)
		if err != nil {
			return nil, err
		}
		with, err := flood(ctx, l, readers)
		if err != nil {
			return nil, err
		}
		grown = append(grown, mb(with.peak-without.peak)/readers)
	}
	return []row{atMost("memory, + per reader that never reads, while 20 MB stream", 1, figure{value: median(grown), unit: "MB"})}, nil
}

// flood streams 20 MB through four sessions, past readers that never read.
func flood(ctx context.Context, l *lab, readers int) (m memory, err error) {
	const sessions = 4
	err = l.with(ctx, func(h *home, server *process) error {
		c, err := h.gather(ctx, sessions)
		if err != nil {
			return err
		}
		defer c.close()
		stuck := make(crowd, readers)
		defer stuck.close()
		for i := range stuck {
			if stuck[i], err = dial(ctx, h.socket()); err != nil {
				return err
			}
			if err := stuck[i].attach(c[i%sessions].session.ID); err != nil {
				return err
			}
		}
		if _, err := c.prompt(order{tokens: 2500, size: 2000}); err != nil {
			return err
		}
		m, err = settled(ctx, server, 0)
		return err
	})
	return m, err
}
