package main

import (
	"strconv"
	"time"
)

const (
	// tokenSize is the least size of a token, in bytes: a letter, the time at which it was sent
	// in nanoseconds since 1970, a space.
	tokenSize = 21
	stampSize = tokenSize - 2
)

// appendToken appends a token of size bytes that was sent at the time at.
func appendToken(dst []byte, at time.Time, size int) []byte {
	dst = append(dst, 't')
	dst = strconv.AppendInt(dst, at.UnixNano(), 10)
	for range size - tokenSize {
		dst = append(dst, '.')
	}
	return append(dst, ' ')
}

// sentAt returns when a token was sent, or false if it is none.
func sentAt(token string) (time.Time, bool) {
	if len(token) < tokenSize || token[0] != 't' {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(token[1:1+stampSize], 10, 64)
	return time.Unix(0, n), err == nil
}

// answer is what has arrived of one answer of a model. It takes the answer in pieces, cut
// anywhere, and knows when each token arrived.
type answer struct {
	size   int // bytes of a token
	part   []byte
	bytes  int // received
	tokens int
	first  time.Time       // when the first token was complete
	last   time.Time       // when the last token was complete
	delays []time.Duration // of each token, from the provider's hand to here
	broken bool            // something else than tokens arrived
}

// take adds text that arrived at the time now.
func (a *answer) take(text string, now time.Time) {
	a.bytes += len(text)
	if len(a.part) == 0 && len(text) == a.size {
		a.token(text, now) // the usual case, without a copy
		return
	}
	a.part = append(a.part, text...)
	for len(a.part) >= a.size {
		a.token(string(a.part[:a.size]), now)
		a.part = a.part[a.size:]
	}
}

func (a *answer) token(t string, now time.Time) {
	at, ok := sentAt(t)
	if !ok {
		a.broken = true
		return
	}
	if a.tokens == 0 {
		a.first = now
	}
	a.tokens++
	a.last = now
	a.delays = append(a.delays, now.Sub(at))
}

// replace takes the whole text as of now, of which take may have had the beginning.
func (a *answer) replace(text string, now time.Time) {
	if len(text) > a.bytes {
		a.take(text[a.bytes:], now)
	}
}
