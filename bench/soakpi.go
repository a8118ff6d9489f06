package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// piSpeaker is a client of pi's protocol, which has no positions: who comes back gets all.
type piSpeaker struct {
	socket, dir string
	chance      *rand.Rand
	id          string
	client      *pi.Client // nil while it is away
}

func newPi(h *home, chance *rand.Rand) *piSpeaker {
	return &piSpeaker{socket: h.socket(), dir: h.work(), chance: chance}
}

// connect comes back if the client is away.
func (p *piSpeaker) connect(ctx context.Context) (err error) {
	if p.client != nil {
		return nil
	}
	if p.client, err = pi.Dial(ctx, p.socket); err != nil || p.id == "" {
		return err
	}
	_, err = p.client.Do(ctx, &piwire.Attach{SessionID: p.id})
	return err
}

func (p *piSpeaker) begin(ctx context.Context) (string, error) {
	if err := p.connect(ctx); err != nil {
		return "", err
	}
	s, err := p.client.Session(ctx, &piwire.Create{Cwd: p.dir})
	if err != nil {
		return "", err
	}
	p.id = s.ID
	return p.id, nil
}

func (p *piSpeaker) turn(ctx context.Context, t task) (aborted bool, err error) {
	if err := p.connect(ctx); err != nil {
		return false, err
	}
	manner := p.chance.IntN(manners)
	before := ""
	p.client.With(p.id, func(v *pi.View) { before = newestUser(v) })
	if _, err := p.client.Do(ctx, &piwire.Prompt{SessionID: p.id, Text: t.String()}); err != nil {
		return false, err
	}
	if manner != stays {
		if err := p.until(ctx, func(v *pi.View) bool { return newestUser(v) != before && shown(v) != "" }); err != nil {
			return false, err
		}
	}
	switch manner {
	case returns, leaves:
		p.close()
		if manner == leaves {
			if err := pause(ctx, time.Duration(p.chance.IntN(3000))*time.Millisecond); err != nil {
				return false, err
			}
		}
		if err := p.connect(ctx); err != nil {
			return false, err
		}
	case aborts:
		_, err := p.client.Do(ctx, &piwire.Abort{SessionID: p.id})
		if e, ok := errors.AsType[*pi.Error](err); err != nil && (!ok || e.Code != piwire.CodeBusy) {
			return false, err // busy: it has just ended
		}
	}
	err = p.until(ctx, func(v *pi.View) bool { return newestUser(v) != before && v.Snapshot.Phase == piwire.PhaseIdle })
	if err != nil {
		return false, err
	}
	got := ""
	p.client.With(p.id, func(v *pi.View) { got = shown(v) })
	if p.chance.IntN(2) == 0 {
		p.close()
	}
	aborted = manner == aborts && got != t.text()
	return aborted, t.check(got, aborted)
}

func (p *piSpeaker) until(ctx context.Context, f func(*pi.View) bool) error {
	return p.client.Until(ctx, p.id, f)
}

func (p *piSpeaker) close() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}

// newestUser returns the id of the newest message of a person.
func newestUser(v *pi.View) string {
	for _, i := range slices.Backward(v.Transcript()) {
		if u, ok := i.(*piwire.UserItem); ok {
			return u.ID
		}
	}
	return ""
}

// shown returns the text of the newest turn.
func shown(v *pi.View) string {
	var parts []string
	items := v.Transcript()
	for _, i := range slices.Backward(items) {
		if _, ok := i.(*piwire.UserItem); ok {
			break
		}
		if a, ok := i.(*piwire.AssistantItem); ok {
			for _, b := range slices.Backward(a.Content) {
				if text, ok := b.(*piwire.Text); ok {
					parts = append(parts, text.Text)
				}
			}
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}
