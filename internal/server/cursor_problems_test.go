package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/cursor/cursortest"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// The connection of a Cursor client breaks again and again in one answer. No word is told twice or out
// of order, those that were on their way at a break are missing at most, because the protocol has no way
// to say what has arrived (section 7), and what the client keeps of the turn is whole.
func TestCursorCutAgainAndAgain(t *testing.T) {
	for name, opt := range transports {
		t.Run(name, func(t *testing.T) {
			const cuts = 8 // the SDK gives up after ten
			words := make([]string, 150)
			for i := range words {
				words[i] = fmt.Sprint("w", i)
			}
			h := newHome(t, "rules: [{default: true, passes: [[{text: '"+strings.Join(words, " ")+"', every: 10ms}]]}]")
			h.start()
			heard := make(chan struct{}, 1)
			kept := "" // the attempt that has a checkpoint; one without counts as no progress
			opt.Watch = func(attempt string, m *agentv1.AgentServerMessage) {
				if m.GetConversationCheckpointUpdate() != nil {
					kept = attempt
				}
				if kept == attempt && m.GetInteractionUpdate().GetTextDelta() != nil {
					select {
					case heard <- struct{}{}:
					default:
					}
				}
			}
			c := h.editor(opt)
			ctx, cancel := context.WithCancel(t.Context())
			var breaking sync.WaitGroup
			breaking.Go(func() {
				for n := 0; n < cuts; n++ {
					for range 3 { // something new each time
						select {
						case <-heard:
						case <-ctx.Done():
							return
						}
					}
					if err := c.Break(); errors.Is(err, cursortest.ErrIdle) {
						n--
					}
				}
			})
			r, err := c.Run(h.context(), cursortest.Prompt{Text: "go"})
			cancel()
			breaking.Wait()
			if err != nil || len(r.Violations) > 0 {
				t.Errorf("%v, violations %q; %s", err, r.Violations, explain(r))
			}
			last, told := -1, 0
			for word := range strings.FieldsSeq(r.Text) {
				var n int
				if _, err := fmt.Sscanf(word, "w%d", &n); err != nil || n <= last {
					t.Errorf("%q after w%d in %q", word, last, r.Text)
				}
				last, told = n, told+1
			}
			if told < len(words)/3 {
				t.Errorf("only %d of %d words were told", told, len(words))
			}
			if said := h.transcript(c.ConversationID()); !strings.HasSuffix(said, strings.Join(words, " ")+"\n") {
				t.Errorf("the transcript is %q", said)
			}
			if turns, missing := c.Turns(c.Checkpoint()); len(missing) > 0 || !strings.Contains(fmt.Sprintf("%+v", turns), strings.Join(words, " ")) {
				t.Errorf("the client keeps %+v, without %q", turns, missing)
			}
			if len(r.Attempts) < cuts/2 {
				t.Errorf("only %d attempts", len(r.Attempts))
			}
		})
	}
}

// Forty Cursor clients come at once, each with its first message, and each gets two thousand tokens.
func TestManyCursorClientsAtOnce(t *testing.T) {
	const clients, tokens = 40, 2000
	h := newHome(t, flood)
	h.start()
	var all sync.WaitGroup
	start := make(chan struct{})
	for n := range clients {
		c := h.editor(cursortest.Options{HTTP2: n%2 == 1, NoRetry: true, StallAfter: time.Minute, MaxGap: time.Minute})
		ctx := h.context()
		all.Go(func() {
			<-start
			r, err := c.Run(ctx, cursortest.Prompt{Text: fmt.Sprintf("flood %d", tokens)})
			if err != nil || r.Text != strings.Repeat("word ", tokens) || len(r.Violations) > 0 {
				t.Errorf("%v, violations %q, %d bytes", err, r.Violations, len(r.Text))
			}
		})
	}
	close(start)
	all.Wait()
}

// countedConn counts what is read from a connection.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// What a Cursor client reads for an answer of small tokens is little more than the answer.
func TestCursorBytesOnTheWire(t *testing.T) {
	for name, opt := range transports {
		t.Run(name, func(t *testing.T) {
			const tokens = 20_000
			h := newHome(t, flood)
			h.start()
			var read atomic.Int64
			opt.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return countedConn{conn, &read}, err
			}
			c := h.editor(opt)
			r := h.turn(c, cursortest.Prompt{Text: fmt.Sprintf("flood %d", tokens)})
			text := int64(tokens * len("word "))
			if len(r.Text) != int(text) {
				t.Fatalf("%d bytes of text, want %d", len(r.Text), text)
			}
			t.Logf("%d bytes for %d of text", read.Load(), text)
			if read.Load() > 3*text {
				t.Errorf("%d bytes for %d of text", read.Load(), text)
			}
		})
	}
}
