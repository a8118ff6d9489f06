package pi_test

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

const (
	notHello = "hello_error invalid_request: The first client message must be hello"
	twice    = "hello_error invalid_request: hello may only be sent as the first message"
	tooLate  = "hello_error invalid_request: Handshake timeout"
	badItem  = "hello_error invalid_request: Invalid client protocol message"
)

// hello, list and prompt as the wire has them.
var (
	helloFrame = []byte("\x00\x00\x00\x15\xa2\x64type\x65hello\x67version\x01")
	list       = &piwire.Request{ID: "1", Command: &piwire.List{}}
)

// Every row of the table of stages (SPEC 3.1) that is about what a client sends.
func TestStages(t *testing.T) {
	hello := &piwire.Hello{Version: 1}
	for _, c := range []struct {
		name  string
		write [][]byte
		want  []string
	}{
		{"hello", [][]byte{helloFrame}, []string{"hello 0"}},
		{"hello in pieces of 2 bytes", slices.Collect(slices.Chunk(helloFrame, 2)), []string{"hello 0"}},
		{"version 0", [][]byte{frames(t, &piwire.Hello{})}, []string{"hello_error version: Unsupported protocol version 0; expected 1", "end"}},
		{"version 2", [][]byte{frames(t, &piwire.Hello{Version: 2})}, []string{"hello_error version: Unsupported protocol version 2; expected 1", "end"}},
		{"version 8", [][]byte{frames(t, &piwire.Hello{Version: 8})}, []string{"hello_error version: Unsupported protocol version 8; expected 1", "end"}},
		{"request first", [][]byte{frames(t, list)}, []string{notHello, "end"}},
		{"second hello", [][]byte{frames(t, hello), frames(t, hello)}, []string{"hello 0", twice, "end"}},
		{"hello and request in one write", [][]byte{frames(t, hello, list)}, []string{"hello 0", "answer 1 list of 0"}},
		{"two requests in one write", [][]byte{frames(t, hello), frames(t, list, list)}, []string{"hello 0", "answer 1 list of 0", "answer 1 list of 0"}},
		{"unknown command", [][]byte{helloFrame, frame(request("rewind"))}, []string{"hello 0", badItem, "end"}},
		{"unknown field", [][]byte{helloFrame, frame("\xa3\x61x\x01\x64type\x65hello\x67version\x01")}, []string{"hello 0", badItem, "end"}},
		{"server's message", [][]byte{helloFrame, frame("\xa2\x64type\x65event\x65event\xa0")}, []string{"hello 0", badItem, "end"}},
		{"bad CBOR first", [][]byte{frame("\xff")}, []string{"hello_error invalid_request: Invalid client protocol frame: CBOR break marker is not supported", "end"}},
		{"bad CBOR later", [][]byte{helloFrame, frame("\xff")}, []string{"hello 0", "hello_error invalid_request: Invalid client protocol frame: CBOR break marker is not supported", "end"}},
		{"empty frame", [][]byte{helloFrame, frame("")}, []string{"hello 0", "hello_error invalid_request: Invalid client protocol frame: Truncated CBOR payload", "end"}},
		{"oversized header", [][]byte{helloFrame, []byte("\x01\x00\x00\x01")}, []string{"hello 0", "hello_error invalid_request: Invalid client protocol frame: Frame length 16777217 exceeds configured limit of 16777216", "end"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newRig(t).peer()
				for _, b := range c.write {
					p.write(b)
				}
				p.wants(c.want...)
			})
		})
	}
}

func frame(payload string) []byte {
	return append([]byte{0, 0, 0, byte(len(payload))}, payload...)
}

func request(command string) string {
	return "\xa3\x64type\x67request\x62id\x611\x67request\xa1\x67command" + string(rune(0x60+len(command))) + command
}

func TestHandshakeTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		write []byte
		block bool
	}{
		"silence":         {},
		"half a hello":    {write: helloFrame[:11]},
		"blocked listing": {write: helloFrame, block: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				if c.block {
					r.engine.set(make(chan struct{}), nil)
				}
				p := r.peer()
				p.write(c.write)
				time.Sleep(4999 * time.Millisecond)
				p.wants()
				time.Sleep(2 * time.Millisecond)
				p.wants(tooLate, "end")
			})
		})
	}
}

// A hello in time is not overtaken by the clock.
func TestHandshakeInTimeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRig(t).ready()
		time.Sleep(time.Hour)
		p.wants()
	})
}

// A client that does not read its hello is closed too: no one waits for it for ever.
func TestHandshakeTimeoutWithBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := newRig(t).pipe()
		defer func() { _ = nc.Close() }()
		if _, err := nc.Write(helloFrame); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second) // the handshake's time and the last message's
		if _, err := nc.Write(helloFrame); err == nil {
			t.Error("the connection is still open")
		}
	})
}

func TestOutputAboveTheLimitClosesSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *pi.Options) { o.MaxFrame = 128 })
		p := r.peer()
		p.send(&piwire.Hello{Version: 1}) // its answer names the models
		p.wants("end")
		p = r.peer()
		p.write([]byte{0, 0, 0, 129})
		for _, line := range tell(p.take()) {
			if strings.HasPrefix(line, "hello ") {
				t.Errorf("got %q", line)
			}
		}
		if !p.ended() {
			t.Error("not closed")
		}
	})
}

// A client that vanishes within a message leaves nothing behind; others notice the change of
// the server only.
func TestVanishingWithinAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other, p := r.ready(), r.ready()
		p.write(frames(t, list)[:9])
		p.close()
		other.wants("server 1")
	})
}

// A change of the server while a hello is prepared is told right after it.
func TestHelloCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		first := r.ready()
		block := make(chan struct{})
		r.engine.set(block, nil)
		p := r.peer()
		p.send(&piwire.Hello{Version: 1})
		p.wants()
		r.engine.set(nil, nil)
		first.ask("1", &piwire.Attach{SessionID: id})
		first.wants("session s1 idle", "answer 1 attach s1 idle", "server 1")
		close(block)
		p.wants("hello 0", "server 2")
	})
}

func TestFailedListingIsAnInternalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.engine.set(nil, net.ErrWriteToConnected)
		p := r.peer()
		p.send(&piwire.Hello{Version: 1})
		p.wants("hello_error internal_error: Internal server error", "end")
	})
}

// The last message waits behind what is being written, and what comes after it is not told.
func TestLastMessageComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		p := r.ready()
		p.send(&piwire.Request{ID: "1", Command: &piwire.Attach{SessionID: id}})
		p.take()
		p.write(bytes.Join([][]byte{frames(t, list, list), frame("\xff")}, nil))
		got := tell(p.take())
		if last := got[len(got)-1]; !strings.HasPrefix(last, "hello_error") || !p.ended() {
			t.Errorf("got %q", got)
		}
	})
}
