package main

import (
	"context"
	"time"
)

// load is what many sessions at once are measured by. Durations of the processor are of the
// server alone, and include what it does after the last token.
type load struct {
	through, plain []float64 // the figure of each round
	cpu            []float64 // ms per 1,000 tokens of each round
}

// measureLoad has n sessions answer at once, with and without roost in turn, each round in
// new sessions. Figure makes one number of a round.
func measureLoad(ctx context.Context, l *lab, n, rounds int, o order, figure func(turns) float64) (load, error) {
	var result load
	err := l.with(ctx, func(h *home, server *process) error {
		for range rounds {
			plain, err := l.direct.runMany(ctx, n, o)
			if err != nil {
				return err
			}
			through, spent, err := h.round(ctx, server, n, o)
			if err != nil {
				return err
			}
			result.plain = append(result.plain, figure(plain))
			result.through = append(result.through, figure(through))
			result.cpu = append(result.cpu, ms(spent)/float64(through.tokens())*1000)
		}
		return nil
	})
	return result, err
}

// round is one round through roost, and the processor time of its server.
func (h *home) round(ctx context.Context, server *process, n int, o order) (turns, time.Duration, error) {
	c, err := h.gather(ctx, n)
	if err != nil {
		return nil, 0, err
	}
	defer c.close()
	before, err := server.quiet(ctx)
	if err != nil {
		return nil, 0, err
	}
	ts, err := c.prompt(o)
	if err != nil {
		return nil, 0, err
	}
	after, err := server.quiet(ctx)
	return ts, after - before, err
}

// measureBurst is 50 answers of 2,000 tokens: from a provider that sends 100,000 tokens/s in
// all, which is what the budgets were made with, and from one that sends as fast as it can.
func measureBurst(ctx context.Context, l *lab) ([]row, error) {
	const answers = 50
	rounds := l.pick(2, 7)
	paced, err := measureLoad(ctx, l, answers, rounds, order{tokens: 2000, rate: 2000}, turns.rate)
	if err != nil {
		return nil, err
	}
	free, err := measureLoad(ctx, l, answers, rounds, order{tokens: 2000}, turns.rate)
	if err != nil {
		return nil, err
	}
	const at = "50 answers × 2,000 tokens, of 100,000 tokens/s, "
	const full = "50 answers × 2,000 tokens, without limit, "
	return []row{
		atLeast(at+"share of direct", 0.5, figure{value: paced.share(), peer: number(median(paced.plain)) + " tokens/s"}),
		atMost(at+"CPU per 1,000 tokens", 15, figure{value: median(paced.cpu), unit: "ms"}),
		noLimit(full+"share of direct", figure{value: free.share(), peer: number(median(free.plain)) + " tokens/s"}),
		noLimit(full+"throughput", figure{value: median(free.through), unit: "tokens/s"}),
		noLimit(full+"CPU per 1,000 tokens", figure{value: median(free.cpu), unit: "ms"}),
	}, nil
}

// share is the median of the rounds' figures as parts of the direct ones.
func (m load) share() float64 {
	shares := make([]float64, len(m.through))
	for i := range shares {
		shares[i] = m.through[i] / m.plain[i]
	}
	return median(shares)
}

// measureCrowd is 200 answers at 50 tokens/s each.
func measureCrowd(ctx context.Context, l *lab) ([]row, error) {
	o := order{tokens: l.pick(150, 400), rate: 50}
	p99 := func(ts turns) float64 { return quantile(ts.delays(), 0.99) }
	m, err := measureLoad(ctx, l, 200, l.pick(1, 3), o, p99)
	if err != nil {
		return nil, err
	}
	const name = "200 answers × 50 tokens/s, "
	return []row{
		atMost(name+"p99 delay", 30, figure{value: median(m.through), unit: "ms", peer: number(median(m.plain)) + " ms"}),
		atMost(name+"CPU per 1,000 tokens", 90, figure{value: median(m.cpu), unit: "ms"}),
	}, nil
}
