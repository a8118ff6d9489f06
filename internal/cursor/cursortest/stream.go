package cursortest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// stream is one attempt's connection to the server, whatever carries it.
type stream interface {
	// send queues m and never blocks. Written, if not nil, gets what became of it: nil when the
	// server has acknowledged it, or when it is on its way on a transport without
	// acknowledgements. It needs room for one.
	send(m *agentv1.AgentClientMessage, written chan<- error)
	// body returns what the server sends, once it has begun to.
	body() (*http.Response, error)
	// failed yields the error of something sent.
	failed() <-chan error
	// close ends the connection at once and waits for what belongs to it.
	close()
}

// receiver reads a stream's messages.
type receiver struct {
	resp     *http.Response
	envelope *cursorwire.EnvelopeReader
}

// newReceiver fails with what a refused stream says of its reason.
func newReceiver(resp *http.Response) (*receiver, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp)
	}
	if t := resp.Header.Get("Content-Type"); t != cursorwire.Proto.StreamType() {
		return nil, cursorwire.NewError(cursorwire.Unknown, "unsupported content type "+t)
	}
	encoding := resp.Header.Get("Connect-Content-Encoding")
	return &receiver{resp, cursorwire.NewEnvelopeReader(resp.Body, encoding, cursorwire.MaxMessage)}, nil
}

// next returns io.EOF after a clean end, and a [*cursorwire.Error] for one with an error.
func (r *receiver) next() (*agentv1.AgentServerMessage, error) {
	e, err := r.envelope.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, ErrNoEnd
	case err != nil:
		return nil, err
	case e.End:
		return nil, endOf(e.Data)
	}
	m := new(agentv1.AgentServerMessage)
	if err := cursorwire.Proto.Decode(e.Data, m); err != nil {
		return nil, cursorwire.NewError(cursorwire.Internal, "parse binary: "+err.Error())
	}
	return m, nil
}

func endOf(data []byte) error {
	end, bad := cursorwire.DecodeEnd(data)
	switch {
	case bad != nil:
		return cursorwire.NewError(cursorwire.Internal, "the end of the stream cannot be read: "+bad.Error())
	case end != nil:
		return end
	default:
		return io.EOF
	}
}

// refusal reads a reply that is not a success.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if e, bad := cursorwire.UnmarshalError(body); bad == nil {
		return e
	}
	return cursorwire.NewError(codeOf(resp.StatusCode), "HTTP "+resp.Status)
}

// codeOf is the Connect code of a status without a body that says more.
func codeOf(status int) cursorwire.Code {
	switch status {
	case http.StatusBadRequest:
		return cursorwire.Internal
	case http.StatusUnauthorized:
		return cursorwire.Unauthenticated
	case http.StatusForbidden:
		return cursorwire.PermissionDenied
	case http.StatusNotFound:
		return cursorwire.Unimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return cursorwire.Unavailable
	default:
		return cursorwire.Unknown
	}
}

// post sends body to path.
func (c *Client) post(ctx context.Context, path string, h http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.o.BaseURL, "/")+path, body)
	if err != nil {
		return nil, err
	}
	req.Header = h
	resp, err := c.http.Do(req)
	if errors.Is(err, io.EOF) { // a request that was cut off is not the clean end of a stream
		err = fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, err.Error())
	}
	return resp, err
}

func zip(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return out.Bytes()
}

// zipEnvelope compresses an envelope.
func zipEnvelope(envelope []byte) []byte {
	const header = 5
	data := zip(envelope[header:])
	out := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(data)))
	return append(out, data...)
}
