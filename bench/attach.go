package main

import (
	"context"
	"errors"
	"time"
)

// measureAttach is from the request to attach to a session of 10,000 items until its answer
// is decoded: when the server has to read the session first, and when it has it in memory.
func measureAttach(ctx context.Context, l *lab) ([]row, error) {
	const id, items = "long", 10_000
	h, err := l.newHome(time.Minute)
	if err != nil {
		return nil, err
	}
	var cold, warm []float64
	err = h.long(ctx, id, items)
	for i := 0; err == nil && i < l.pick(2, 5); i++ {
		err = h.serve(ctx, func(h *home, _ *process) error {
			for n := range 5 {
				took, err := h.attach(ctx, id)
				if err != nil {
					return err
				}
				if n == 0 {
					cold = append(cold, took)
				} else {
					warm = append(warm, took)
				}
			}
			return nil
		})
	}
	const name = "attach to a session of 10,000 items, "
	return []row{
		atMost(name+"in memory", 100, figure{value: median(warm), unit: "ms"}),
		atMost(name+"not in memory", 100, figure{value: median(cold), unit: "ms"}),
	}, errors.Join(err, h.remove())
}

// attach is how long one attach takes on a new connection, in milliseconds.
func (h *home) attach(ctx context.Context, id string) (float64, error) {
	c, err := dial(ctx, h.socket())
	if err != nil {
		return 0, err
	}
	defer c.close()
	began := time.Now()
	err = c.attach(id)
	return ms(time.Since(began)), err
}
