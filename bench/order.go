package main

import (
	"bytes"
	"fmt"
	"time"
)

// order is what an answer should be like. It is the text of a prompt, so it reaches the
// provider through whatever is in between.
type order struct {
	tokens int
	rate   int // tokens per second; 0 for as fast as they are taken
	size   int // bytes of a token; 0 for tokenSize
}

const orderFormat = "bench: tokens=%d rate=%d size=%d."

func (o order) String() string {
	return fmt.Sprintf(orderFormat, o.tokens, o.rate, o.tokenBytes())
}

func (o order) tokenBytes() int { return max(o.size, tokenSize) }

// findOrder finds the newest order in the body of a request.
func findOrder(body []byte) (order, error) {
	i := bytes.LastIndex(body, []byte("bench: "))
	if i < 0 {
		return order{}, fmt.Errorf("the request has no order such as %q", order{tokens: 10})
	}
	var o order
	if _, err := fmt.Sscanf(string(body[i:min(len(body), i+100)]), orderFormat, &o.tokens, &o.rate, &o.size); err != nil {
		return order{}, fmt.Errorf("order: %w", err)
	}
	if o.tokens < 0 || o.rate < 0 || o.size < tokenSize {
		return order{}, fmt.Errorf("order %v is out of range", o)
	}
	return o, nil
}

// period is the time between two tokens.
func (o order) period() time.Duration {
	if o.rate == 0 {
		return 0
	}
	return time.Second / time.Duration(o.rate)
}
