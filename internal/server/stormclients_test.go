package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/piwire"
)

// stormLimit is how long one step of a client may take, however often the server is killed meanwhile. The
// pauses between all the tries of a Cursor client take two minutes.
const stormLimit = 6 * time.Minute

// piDriver is a person with a client of pi's protocol, who comes back whenever the connection is lost.
type piDriver struct {
	s    *storm
	rng  *rand.Rand
	c    *pi.Client
	id   string // of the session, once it is made
	seen map[string]string
}

func (s *storm) drivePi(rng *rand.Rand) {
	d := &piDriver{s: s, rng: rng}
	for !s.over.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), stormLimit)
		err := d.turn(ctx)
		if ctx.Err() != nil {
			s.fail("a turn of pi's client of %s did not end: %v", d.id, err)
		}
		cancel()
	}
	if d.c != nil {
		d.c.With(d.id, func(v *pi.View) {
			if v != nil && v.Snapshot != nil && idle(v) {
				s.tell(assistantText(v))
			}
		})
		d.c.Close()
	}
}

// turn sends a message and follows its run to the end, over as many connections as it takes.
func (d *piDriver) turn(ctx context.Context) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	text := d.s.say()
	_, err := d.c.Do(ctx, &piwire.Prompt{SessionID: d.id, Text: text + " go"})
	switch {
	case err == nil:
		d.s.acked(text, d.id)
	case ctx.Err() != nil:
		return err
	}
	if d.rng.IntN(3) == 0 {
		steer := d.s.say()
		if _, err := d.c.Do(ctx, &piwire.Steer{SessionID: d.id, Text: steer + " and"}); err == nil {
			d.s.acked(steer, d.id)
		}
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	d.s.ended(text)
	return nil
}

// ready brings the client to an idle session.
func (d *piDriver) ready(ctx context.Context) error {
	for ctx.Err() == nil {
		err := d.attached(ctx)
		if err == nil {
			err = d.c.Until(ctx, d.id, idle)
		}
		if err == nil {
			d.look()
			return nil
		}
		if d.c != nil {
			d.look()
			d.c.Close()
			d.c = nil
		}
		pause(ctx, 10*time.Millisecond)
	}
	return ctx.Err()
}

// attached makes sure that there is a connection with the session.
func (d *piDriver) attached(ctx context.Context) error {
	if d.c != nil && d.c.Err() == nil {
		return nil
	}
	c, err := pi.Dial(ctx, d.s.socket())
	if err != nil {
		return err
	}
	d.c = c
	if d.id == "" {
		session, err := c.Session(ctx, &piwire.Create{Cwd: d.s.h.dir})
		if err != nil {
			return err
		}
		d.id = session.ID
		return nil
	}
	_, err = c.Do(ctx, &piwire.Attach{SessionID: d.id})
	if e, ok := errors.AsType[*pi.Error](err); ok && e.Code == piwire.CodeNotFound {
		d.s.fail("session %s is lost", d.id)
	}
	return err
}

// look compares what is shown with what was: texts only grow.
func (d *piDriver) look() {
	d.c.With(d.id, func(v *pi.View) {
		if v == nil || v.Snapshot == nil {
			return
		}
		now := shown(v)
		for item, before := range d.seen {
			if !strings.HasPrefix(now[item], before) {
				d.s.fail("session %s showed %q in %s, and then %q", d.id, before, item, now[item])
			}
		}
		d.seen = now
	})
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// driveCursor is a person with a client of Cursor's protocol, which comes back as the SDK does.
func (s *storm) driveCursor(n int) func() {
	token, err := os.ReadFile(filepath.Join(s.h.dir, "data", "token"))
	if err != nil {
		s.h.t.Fatal(err)
	}
	deploy := cursortest.Tool{Name: "deploy", Call: func(ctx context.Context, args map[string]any) (string, error) {
		id, _ := args["id"].(string)
		s.mu.Lock()
		s.deployed[id]++
		s.mu.Unlock()
		pause(ctx, 20*time.Millisecond)
		return "deployed", nil
	}}
	c := cursortest.New(cursortest.Options{
		BaseURL: s.h.url, Token: strings.TrimSpace(string(token)), Model: "test/m", Dir: s.h.workspace(),
		HTTP2: n%4 == 1, RetryCanceled: true, Backoff: 25 * time.Millisecond, Tools: []cursortest.Tool{deploy},
	})
	return func() {
		defer c.Close()
		for !s.over.Load() {
			s.cursorTurn(c)
		}
	}
}

func (s *storm) cursorTurn(c *cursortest.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), stormLimit)
	defer cancel()
	text := s.say()
	r, err := c.Run(ctx, cursortest.Prompt{Text: text + " go"})
	if ctx.Err() != nil {
		s.fail("a turn of a Cursor client did not end: %v; %s", err, explain(r))
	}
	for _, v := range r.Violations {
		s.fail("violation %q; %s", v, explain(r))
	}
	if !s.words("a Cursor client", r.Text, make(map[string]int)) {
		s.fail("%s", explain(r))
	}
	if err != nil {
		pause(ctx, 100*time.Millisecond) // its retries are used up; a person tries again
		return
	}
	s.acked(text, c.ConversationID())
	s.tell(r.Text)
	s.ended(text)
}
