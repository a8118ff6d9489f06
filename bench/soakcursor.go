package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	return false, t.check(r.Text, false)
}

func (c *cursorSpeaker) close() { c.client.Close() }
