package mcptool

import (
	"errors"
	"io"
	"time"
)

const (
	maxMessage = 16 << 20 // bytes of one message
	maxGarbage = 1 << 20  // bytes that are no message before the server is given up
	maxAsked   = 64       // questions of a server that are not answered yet

	paceRate  = 1000 // messages a second that nobody asked for
	paceBurst = 2000
)

var (
	errTooLong = errors.New("it sent a message that is too large")
	errGarbage = errors.New("what it sends is not the protocol")
	errAsking  = errors.New("it asks too many questions at once")
)

// pace slows down whoever sends without being asked, by not reading on. The zero pace is
// ready. It belongs to one goroutine.
type pace struct {
	spent float64
	at    time.Time
}

// wait takes n messages into account and waits while there are too many of them, or until
// done is closed.
func (p *pace) wait(n int, done <-chan struct{}) {
	now := time.Now()
	p.spent = max(0, p.spent-now.Sub(p.at).Seconds()*paceRate) + float64(n)
	p.at = now
	over := p.spent - paceBurst
	if over <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(over / paceRate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// limited is a body of at most left bytes.
type limited struct {
	io.ReadCloser
	left int64
}

// Read gives errTooLong instead of more bytes than allowed.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// paced is an endless body of lines, several to a message, that is read at a pace.
type paced struct {
	io.ReadCloser
	pace pace
	done <-chan struct{}
}

// Read reads, and waits when there are too many lines.
func (b *paced) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	lines := 0
	for _, c := range p[:n] {
		if c == '\n' {
			lines++
		}
	}
	b.pace.wait(lines/2, b.done)
	return n, err
}
