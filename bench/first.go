package main

import (
	"context"
	"time"
)

// measureFirst is how soon a prompt is accepted and how soon its answer begins, in sessions
// that are in use. Prompts with and without roost take turns.
func measureFirst(ctx context.Context, l *lab) (rows []row, err error) {
	const sessions = 10
	o := order{tokens: 1}
	rounds := l.pick(5, 30)
	var first, acked, plain []float64
	err = l.with(ctx, func(h *home, _ *process) error {
		c, err := h.gather(ctx, sessions)
		if err != nil {
			return err
		}
		defer c.close()
		for round := range rounds {
			for _, client := range c {
				t, err := client.prompt(o)
				if err != nil {
					return err
				}
				d, err := l.direct.run(ctx, o)
				if err != nil {
					return err
				}
				if round == 0 {
					continue // connections are being made
				}
				first = append(first, ms(t.first.Sub(t.sent)))
				acked = append(acked, ms(t.acked.Sub(t.sent)))
				plain = append(plain, ms(d.first.Sub(d.sent)))
				// The next prompt finds the server at rest, as a person's does.
				if err := pause(ctx, 5*time.Millisecond); err != nil {
					return err
				}
			}
		}
		return nil
	})
	added := func(q float64) figure {
		d := quantile(plain, q)
		return figure{value: quantile(first, q) - d, unit: "ms", peer: number(d) + " ms in all"}
	}
	return []row{
		atMost("added time to first token, p50", 5, added(0.5)),
		noLimit("added time to first token, p99", added(0.99)),
		atMost("prompt acknowledged, p50", 3, figure{value: median(acked), unit: "ms"}),
		noLimit("prompt acknowledged, p99", figure{value: quantile(acked, 0.99), unit: "ms"}),
	}, err
}
