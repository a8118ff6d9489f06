package main

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTokenCarriesItsTime(t *testing.T) {
	at := time.Unix(1_790_000_000, 123_456_789)
	for _, size := range []int{tokenSize, tokenSize + 1, 2000} {
		token := string(appendToken(nil, at, size))
		if got, ok := sentAt(token); len(token) != size || !ok || !got.Equal(at) {
			t.Errorf("size %d: %q has %d bytes and %v, %v", size, token, len(token), got, ok)
		}
	}
}

func TestNoToken(t *testing.T) {
	for _, text := range []string{"", "t", "hello, this is not a token", "t17900000000000000x0 ", strings.Repeat("t", tokenSize)} {
		if at, ok := sentAt(text); ok {
			t.Errorf("%q was sent at %v", text, at)
		}
	}
}

// However an answer is cut, each of its tokens is counted once, with its own delay.
func TestAnswerInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := time.Unix(1_790_000_000, 0)
		size := rapid.IntRange(tokenSize, tokenSize+3).Draw(t, "size")
		n := rapid.IntRange(1, 30).Draw(t, "tokens")
		var text string
		for i := range n {
			text += string(appendToken(nil, sent.Add(time.Duration(i)), size))
		}
		a := answer{size: size}
		now := sent.Add(time.Second)
		for from := 0; from < len(text); {
			to := rapid.IntRange(from, len(text)).Draw(t, "to")
			if rapid.Bool().Draw(t, "whole") {
				a.replace(text[:to], now)
			} else {
				a.take(text[from:to], now)
			}
			from = to
		}
		if a.tokens != n || a.broken || len(a.part) != 0 || a.bytes != len(text) {
			t.Fatalf("%d tokens of %d, broken %v, rest %q", a.tokens, n, a.broken, a.part)
		}
		for i, d := range a.delays {
			if d != time.Second-time.Duration(i) {
				t.Fatalf("token %d took %v", i, d)
			}
		}
		if !a.first.Equal(now) || !a.last.Equal(now) {
			t.Fatalf("first %v, last %v", a.first, a.last)
		}
	})
}

func TestAnswerNoticesOtherText(t *testing.T) {
	a := answer{size: tokenSize}
	a.take("Sorry, I cannot do this for you.", time.Unix(0, 0))
	if !a.broken {
		t.Error("text that is no token was taken for one")
	}
}

func TestReplaceNeverTakesTextTwice(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	text := string(appendToken(nil, now, tokenSize))
	a := answer{size: tokenSize}
	a.take(text, now)
	a.replace(text, now)
	a.replace(text[:5], now)
	if a.tokens != 1 || len(a.part) != 0 {
		t.Errorf("%d tokens, rest %q", a.tokens, a.part)
	}
}
