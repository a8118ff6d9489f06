package pi

import (
	"log/slog"
	"sync"

	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Limits on what waits for a client that does not read.
const (
	maxBehind  = 8    // server snapshots; a newer one replaces the oldest
	maxRemoved = 1024 // removed sessions; a client that misses more has to come again
)

// news is what a connection is still to be told of the server: bounded, and safe for
// concurrent use.
type news struct {
	mu      sync.Mutex
	removed []session.ID
	frames  [][]byte // server snapshots, the oldest first
	some    chan struct{}
}

func newNews() *news { return &news{some: make(chan struct{}, 1)} }

// snapshot adds a server snapshot, which connections share.
func (n *news) snapshot(frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.frames) == maxBehind {
		n.frames = append(n.frames[:0], n.frames[1:]...)
	}
	n.frames = append(n.frames, frame)
	n.signal()
}

// remove adds a removed session. It reports whether there was room.
func (n *news) remove(id session.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.removed) == maxRemoved {
		return false
	}
	n.removed = append(n.removed, id)
	n.signal()
	return true
}

func (n *news) signal() {
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// take returns the next thing to tell: removed sessions, else a server snapshot, else
// nothing.
func (n *news) take() (removed []session.ID, frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.removed) > 0 {
		removed, n.removed = n.removed, nil
		return removed, nil
	}
	if len(n.frames) > 0 {
		frame, n.frames = n.frames[0], n.frames[1:]
	}
	return nil, frame
}

// tellNews writes the news until the connection ends.
func (c *conn) tellNews() {
	for {
		removed, frame := c.news.take()
		switch {
		case frame != nil:
			c.writeLocked(frame)
		case removed != nil:
			for _, id := range removed {
				c.tellRemoved(id)
			}
		default:
			select {
			case <-c.news.some:
			case <-c.ctx.Done():
				return
			}
		}
	}
}

func (c *conn) writeLocked(frame []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.write(frame)
}

// tellRemoved tells the client that a session was deleted, and forgets it.
func (c *conn) tellRemoved(id session.ID) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.detach(id)
	c.send(&piwire.SessionRemovedEvent{SessionID: string(id)})
}

// removed is told of a session that was deleted. It does not block.
func (c *conn) removed(id session.ID) {
	if !c.news.remove(id) {
		c.log.Info("client does not read", slog.String("connection", c.id))
		c.close()
	}
}
