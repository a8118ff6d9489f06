package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
)

// cursorSpeaker is a client of Cursor's protocol. It runs its tools itself, and keeps the
// conversation; the session is made by the first turn.
type cursorSpeaker struct {
	client *cursortest.Client
	chance *rand.Rand
}

func newCursor(h *home, url, token string, chance *rand.Rand) *cursorSpeaker {
	return &cursorSpeaker{chance: chance, client: cursortest.New(cursortest.Options{
		BaseURL: url, Token: token, Model: "bench/" + modelID, Dir: h.work(), HTTP2: chance.IntN(2) == 0,
		Backoff: 10 * time.Millisecond,
	})}
}

func (c *cursorSpeaker) begin(context.Context) (string, error) {
	return string(cursor.SessionID(c.client.ConversationID())), nil
}

func (c *cursorSpeaker) turn(ctx context.Context, t task) (aborted bool, err error) {
	manner := c.chance.IntN(manners)
	breaks := make(chan error, 1)
	var timer *time.Timer
	if manner == returns {
		after := time.Duration(200+c.chance.IntN(1000)) * time.Millisecond
		timer = time.AfterFunc(after, func() { breaks <- c.client.Break() })
	}
	r, err := c.client.Run(ctx, cursortest.Prompt{Text: t.String()})
	if timer != nil && !timer.Stop() {
		if broke := <-breaks; broke != nil && !errors.Is(broke, cursortest.ErrIdle) {
			return false, broke
		}
	}
	if err != nil {
		return false, err
	}
	if len(r.Violations) > 0 {
		return false, fmt.Errorf("violations of the protocol: %q", r.Violations)
	}
	if manner == returns && t.gap(r.Text) {
		return false, nil
	}
	return false, t.check(r.Text, false)
}

// gap reports whether a text is the answer to a task but for a piece in the middle. What is on
// its way when the stream breaks has been written by the server and not been read by the
// client: this protocol has no positions, and the next checkpoint makes up for it.
func (t task) gap(got string) bool {
	want := t.text()
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	for ; same >= 0; same-- {
		if strings.HasSuffix(want, got[same:]) {
			return len(got) <= len(want)
		}
	}
	return false
}

func (c *cursorSpeaker) close() { c.client.Close() }
