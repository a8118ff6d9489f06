package main

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/internal/piwire"
)

// measureStream is one answer at 100 tokens/s: what roost adds to each token, in time and in
// bytes. Rounds with and without roost take turns, so that both see the same machine.
func measureStream(ctx context.Context, l *lab) (rows []row, err error) {
	o := order{tokens: l.pick(100, 250), rate: 100}
	rounds := l.pick(3, 8)
	err = l.with(ctx, func(h *home, _ *process) error {
		c, err := h.gather(ctx, 1)
		if err != nil {
			return err
		}
		defer c.close()
		var through, plain turns
		for range rounds {
			t, err := c.prompt(o)
			if err != nil {
				return err
			}
			d, err := l.direct.run(ctx, o)
			if err != nil {
				return err
			}
			through, plain = append(through, t...), append(plain, d)
		}
		rows = append(delayRows(through.delays(), plain.delays()), wireRows(through, c[0].session.ID)...)
		return nil
	})
	return rows, err
}

func delayRows(through, plain []float64) []row {
	const name = "added delay per token at 100 tokens/s, "
	added := func(q float64) figure {
		d := quantile(plain, q)
		return figure{value: quantile(through, q) - d, unit: "ms", peer: number(d) + " ms in all"}
	}
	return []row{atMost(name+"p50", 1.5, added(0.5)), atMost(name+"p99", 4, added(0.99))}
}

// wireRows says what a token costs on the wire, and how much of that no server of pi's
// protocol can save: a message with ids of one character and no text.
func wireRows(ts turns, session string) []row {
	var sum wire
	for _, t := range ts {
		sum.deltas += t.wire.deltas
		sum.bytes += t.wire.bytes
	}
	if sum.deltas == 0 {
		return []row{{measure: "bytes on the wire per delta beyond its text", budget: "≤ 60 B", roost: "no delta of one token", direct: "–", verdict: "**over**"}}
	}
	least, err := piwire.AppendServerFrame(nil, &piwire.SessionProgressEvent{
		SessionID: "s", Progress: &piwire.AssistantDelta{MessageID: "m", Kind: piwire.DeltaText},
	}, piwire.MaxFrame)
	if err != nil {
		return nil // the message is a constant
	}
	beyond := float64(sum.bytes)/float64(sum.deltas) - tokenSize
	return []row{
		atMost("bytes on the wire per delta beyond its text (CBOR)", 60, figure{value: beyond, unit: "B"}),
		noLimit(fmt.Sprintf("… of which pi's protocol prescribes (the id of the session is %d more)", len(session)-1), figure{value: float64(len(least)), unit: "B"}),
		noLimit("… of the messages that carry exactly one token", figure{value: 100 * float64(sum.deltas) / float64(ts.tokens()), unit: "%"}),
	}
}
