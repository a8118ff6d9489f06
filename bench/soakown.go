package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	roost "github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// speaker is a client of one protocol with a session of its own. It belongs to one goroutine.
type speaker interface {
	// begin makes the session and returns its id.
	begin(ctx context.Context) (string, error)
	// turn has a task done and returns once its run is over and the client shows its text, or,
	// when it aborted the run, the beginning of it.
	turn(ctx context.Context, t task) (aborted bool, err error)
	close()
}

// lines is the connections of a client, which can be cut without a word.
type lines struct {
	address string // of a Unix socket

	mu   sync.Mutex
	open []net.Conn
}

func (l *lines) dial(ctx context.Context) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "unix", l.address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, nc)
	return nc, nil
}

// cut ends every connection.
func (l *lines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, nc := range l.open {
		_ = nc.Close()
	}
	l.open = nil
}

// own is a client of roost's own API. It keeps its view of the session, and comes back to
// where it was.
type own struct {
	api    *roost.Client
	lines  *lines
	dir    string
	chance *rand.Rand
	id     string
	view   *roost.View
	calm   bool // it stays in every turn
}

func newOwn(h *home, chance *rand.Rand) (*own, error) {
	o := &own{lines: &lines{address: h.socket() + ".http"}, dir: h.work(), chance: chance, view: new(roost.View)}
	var err error
	o.api, err = roost.New(roost.Options{Address: "http://roost", Dial: o.lines.dial})
	return o, err
}

func (o *own) begin(ctx context.Context) (string, error) {
	s, err := o.api.Create(ctx, &roostv1.CreateSessionRequest{Cwd: o.dir})
	if err != nil {
		return "", err
	}
	o.id = s.Session.Id
	return o.id, nil
}

// What a client of roost's own API does during a turn.
const (
	stays   = iota // it watches to the end
	returns        // it loses its connections in the middle, and comes back by position
	leaves         // it goes away after the prompt, and comes back once much has happened
	aborts         // it stops the run
	manners
)

func (o *own) turn(ctx context.Context, t task) (aborted bool, err error) {
	manner := o.chance.IntN(manners)
	if o.calm {
		manner = stays
	}
	p, err := o.api.Prompt(ctx, o.id, "", t.String())
	if err != nil {
		return false, err
	}
	if manner == leaves {
		o.lines.cut()
		if err := pause(ctx, time.Duration(o.chance.IntN(3000))*time.Millisecond); err != nil {
			return false, err
		}
	}
	acted := false
	for frame, err := range o.api.Watch(ctx, o.id, roost.WatchOptions{From: o.view.Position}) {
		if err != nil {
			return false, err
		}
		o.view.Apply(frame)
		if o.view.Session.GetLastRun().GetId() >= p.Run {
			break
		}
		if acted || len(frame.GetEvents().GetEvents()) == 0 || newestText(o.view.Items) == "" {
			continue
		}
		acted = true
		switch manner {
		case returns:
			o.lines.cut()
		case aborts:
			if _, err := o.api.Abort(ctx, o.id); err != nil && roost.KindOf(err) != roost.Busy {
				return false, err // Busy: it has just ended
			}
		}
	}
	aborted = o.view.Session.GetLastRun().GetOutcome() == roostv1.Outcome_OUTCOME_ABORTED
	if aborted && manner != aborts {
		return true, errors.New("the run was aborted by nobody")
	}
	return aborted, t.check(newestText(o.view.Items), aborted)
}

func (o *own) close() {
	o.api.Close()
	o.lines.cut()
}

// check reports whether a text is the answer to a task, or the beginning of it.
func (t task) check(got string, aborted bool) error {
	want := t.text()
	if got == want || aborted && strings.HasPrefix(want, got) {
		return nil
	}
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	return fmt.Errorf("the answer to %q has %d bytes, aborted %v, and should have %d; from byte %d on it is %.100q instead of %.100q",
		t, len(got), aborted, len(want), same, got[same:], want[same:])
}

// newestText returns the text of the newest turn.
func newestText(items []*roostv1.Item) string {
	var parts []string
	for _, i := range slices.Backward(items) {
		if i.GetUser() != nil && i.GetUser().Note == "" {
			break
		}
		parts = append(parts, spoken(i))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// spoken is the text of an item of a model, without its thoughts.
func spoken(i *roostv1.Item) string {
	var text strings.Builder
	for _, b := range i.GetAssistant().GetBlocks() {
		text.WriteString(b.GetText().GetText())
	}
	return text.String()
}
