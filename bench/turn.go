package main

import (
	"fmt"
	"time"
)

// turn is one prompt and its answer.
type turn struct {
	answer
	sent  time.Time // the prompt
	acked time.Time // that the prompt was accepted; zero for a direct connection
	wire  wire
}

func newTurn(o order) *turn {
	return &turn{answer: answer{size: o.tokenBytes(), delays: make([]time.Duration, 0, o.tokens)}, sent: time.Now()}
}

// check reports whether the answer is what was ordered.
func (t *turn) check(o order) error {
	if t.tokens != o.tokens || t.broken || len(t.part) > 0 {
		return fmt.Errorf("the answer has %d tokens of %d (and %d bytes more, broken %v)", t.tokens, o.tokens, len(t.part), t.broken)
	}
	return nil
}

// wire counts the messages that carried exactly one token.
type wire struct {
	deltas int
	bytes  int // of these messages, their length prefixes and their text included
}
