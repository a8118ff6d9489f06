package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdio is a connection to a program: one JSON message a line, in both directions. Unlike
// the SDK's own it passes over lines that are no messages, cannot be blocked by a program
// that does not read, and slows down one that sends without end. It is used once.
type stdio struct {
	child  *child
	lines  *bufio.Reader // of the program's output; Read's alone
	pace   pace          // Read's alone
	wrong  int           // bytes of garbage since the last message; Read's alone
	sample string        // the first garbage; Read's alone

	write chan []byte   // to the goroutine that writes
	done  chan struct{} // closed by Close
	close sync.Once
	asked atomic.Int64 // questions of the server that are not answered

	failed atomic.Pointer[error] // why reading ended, when it was not the end of the output
}

func newStdio(c *child) *stdio {
	s := &stdio{child: c, lines: bufio.NewReaderSize(c.out, 64<<10), write: make(chan []byte), done: make(chan struct{})}
	go s.writeAll()
	return s
}

// Connect returns the connection itself, which is its own transport.
func (s *stdio) Connect(context.Context) (mcp.Connection, error) { return s, nil }

// SessionID returns nothing: programs have no sessions.
func (*stdio) SessionID() string { return "" }

// writeAll writes messages until the connection is closed. A program that does not read
// blocks it, and nobody else.
func (s *stdio) writeAll() {
	for {
		select {
		case data := <-s.write:
			if _, err := s.child.in.Write(data); err != nil {
				_ = s.Close() // a program that cannot be asked is of no use
				return
			}
		case <-s.done:
			return
		}
	}
}

// Write hands a message over. It does not wait until the program has read it.
func (s *stdio) Write(ctx context.Context, msg jsonrpc.Message) error {
	if _, ok := msg.(*jsonrpc.Response); ok {
		s.asked.Add(-1)
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	select {
	case s.write <- append(data, '\n'):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.child.exited:
		return io.ErrClosedPipe
	case <-s.done:
		return io.ErrClosedPipe
	}
}

// Read returns the next message.
func (s *stdio) Read(context.Context) (jsonrpc.Message, error) {
	msg, err := s.next()
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.CompareAndSwap(nil, &err)
	}
	return msg, err
}

func (s *stdio) next() (jsonrpc.Message, error) {
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		msg, err := decode(bytes.TrimSpace(line))
		if err != nil {
			if err := s.garbage(line); err != nil {
				return nil, err
			}
			continue
		}
		s.wrong = 0
		req, ok := msg.(*jsonrpc.Request)
		if !ok {
			return msg, nil
		}
		s.pace.wait(1, s.done)
		if req.IsCall() && s.asked.Add(1) > maxAsked {
			return nil, errAsking
		}
		if req.IsCall() || wanted(req.Method) {
			return msg, nil
		}
	}
}

// decode decodes a message. Most of what is none does not look like one either.
func decode(line []byte) (jsonrpc.Message, error) {
	if len(line) == 0 || line[0] != '{' {
		return nil, errGarbage
	}
	return jsonrpc.DecodeMessage(line)
}

// line returns the next line, which is valid until the next call.
func (s *stdio) line() ([]byte, error) {
	var long []byte
	for {
		piece, err := s.lines.ReadSlice('\n')
		if len(long)+len(piece) > maxMessage {
			return nil, errTooLong
		}
		if err == nil && long == nil {
			return piece, nil
		}
		long = append(long, piece...)
		switch {
		case err == nil:
			return long, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(long) > 0 && errors.Is(err, io.EOF):
			return long, nil // the end follows
		default:
			// The deadline after the program's end, a pipe that was closed: no more output.
			return nil, io.EOF
		}
	}
}

// garbage passes over a line, as far as there are not too many.
func (s *stdio) garbage(line []byte) error {
	if s.sample == "" {
		s.sample = cleanLine(string(line[:min(len(line), 400)]), 100)
	}
	s.wrong += len(line) + 1
	if s.wrong > maxGarbage {
		return fmt.Errorf("%w; it began with %q", errGarbage, s.sample)
	}
	return nil
}

// Close ends the program and everything it has started, within 2 s.
func (s *stdio) Close() error {
	s.close.Do(func() { close(s.done) })
	s.child.end()
	return nil
}

// String says what is known about why the connection ended.
func (s *stdio) String() string {
	text := s.child.String()
	if err := s.failed.Load(); err != nil {
		if text == "" {
			return (*err).Error()
		}
		text = (*err).Error() + "; " + text
	}
	return text
}
