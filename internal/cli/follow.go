package cli

import (
	"context"
	"time"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// arrival is what a watch brings: a frame, or an error that ends it, or the loss of the
// connection, which does not.
type arrival struct {
	frame     *roostv1.WatchResponse
	err, lost error
}

// follow shows what happens until the run has ended, and listens to the person meanwhile.
func (r *oneRun) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	arrivals := make(chan arrival)
	go r.receive(ctx, arrivals, r.view.Position)
	defer func() {
		cancel()
		for range arrivals { // until it has ended
		}
	}()
	for {
		select {
		case a, more := <-arrivals:
			if !more {
				return context.Cause(ctx)
			}
			if over, err := r.take(ctx, a); over || err != nil {
				return err
			}
		case line, more := <-r.approval.lines:
			if err := r.approval.typed(ctx, &r.view, line, more); err != nil {
				return err
			}
		}
	}
}

func (r *oneRun) receive(ctx context.Context, arrivals chan<- arrival, from *roostv1.Position) {
	defer close(arrivals)
	send := func(a arrival) bool {
		select {
		case arrivals <- a:
			return true
		case <-ctx.Done():
			return false
		}
	}
	lost := func(err error, _ time.Duration) { send(arrival{lost: err}) }
	for frame, err := range r.client.Watch(ctx, r.id, client.WatchOptions{From: from, Lost: lost}) {
		if !send(arrival{frame: frame, err: err}) {
			return
		}
	}
}

// take shows what has arrived and reports whether the run is over.
func (r *oneRun) take(ctx context.Context, a arrival) (over bool, err error) {
	switch {
	case a.err != nil:
		return false, a.err
	case a.lost != nil:
		r.outage.lost(a.lost)
		return false, nil
	}
	r.outage.back()
	r.show.frame(a.frame)
	r.view.Apply(a.frame)
	r.show.update(&r.view)
	if r.view.Gone {
		return false, &client.Error{Kind: client.NotFound, Message: "the session was deleted"}
	}
	err = r.approval.update(ctx, &r.view)
	return r.view.Session.GetLastRun().GetId() >= r.run, err
}

// outage tells of a lost connection once, and once that it is back, however many attempts
// that takes.
type outage struct {
	err  *terminal
	down bool
}

func (o *outage) lost(err error) {
	if !o.down {
		o.err.printf("%s\n", o.err.style(yellow, "connection lost, trying again until it is back: "+o.err.clean(err.Error())))
	}
	o.down = true
}

// back is called with every frame.
func (o *outage) back() {
	if o.down {
		o.err.printf("%s\n", o.err.style(yellow, "connected again"))
	}
	o.down = false
}
