package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// providerCommand is the argument that makes this program the provider.
const providerCommand = "provider"

const (
	modelID  = "fake"
	maxBody  = 64 << 20
	chunkTop = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"` + modelID + `","system_fingerprint":"fp_bench","choices":[{"index":0,"delta":`
	chunkEnd = `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
)

// provider answers Chat Completions requests with the tokens they order.
type provider struct {
	streaming atomic.Int64 // answers whose first token was sent
	newest    atomic.Int64 // when that last was, nanoseconds since 1970
	soaked    atomic.Int64 // requests of the soak
}

// tally is what the provider tells about itself.
type tally struct {
	Streaming int64 // answers begun since the last reset
	Newest    int64 // when the newest of them sent its first token, nanoseconds since 1970
}

// runProvider serves on a free port, whose address it prints, until it is told to stop or
// whoever started it is gone.
func runProvider(in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "http://"+l.Addr().String())
	p := &provider{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.complete)
	mux.HandleFunc("POST /tally", p.tally)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends with the parent
		stop()
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tally tells what has been counted, and counts from 0 again.
func (p *provider) tally(w http.ResponseWriter, r *http.Request) {
	t := tally{Streaming: p.streaming.Load(), Newest: p.newest.Load()}
	if r.URL.Query().Has("reset") {
		p.streaming.Store(0)
	}
	_ = json.NewEncoder(w).Encode(t)
}

func (p *provider) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if bytes.Contains(body, []byte(taskMark)) {
		p.soak(w, r, body)
		return
	}
	o, err := findOrder(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	p.stream(r.Context(), w, o)
}

// stream writes an answer, and flushes it token by token, as providers do.
func (p *provider) stream(ctx context.Context, w http.ResponseWriter, o order) {
	flush := http.NewResponseController(w).Flush
	next := time.Now()
	var phase time.Duration
	if o.rate > 0 {
		// Answers that begin together do not send together, as real ones do not.
		phase = time.Duration(next.UnixNano()*0x9e3779b1) & 0xfffffff % o.period()
		next = next.Add(phase)
	}
	wait := time.NewTimer(phase)
	defer wait.Stop()
	var buf []byte
	buf = append(buf, chunkTop+`{"role":"assistant","content":""}`+chunkEnd...)
	for i := range o.tokens {
		if o.rate > 0 {
			if wait.Reset(time.Until(next)); !next.Before(time.Now()) {
				select {
				case <-wait.C:
				case <-ctx.Done():
					return
				}
			}
			next = next.Add(o.period())
		}
		now := time.Now()
		if i == 0 {
			p.newest.Store(now.UnixNano())
			p.streaming.Add(1)
		}
		buf = append(buf, chunkTop+`{"content":"`...)
		buf = appendToken(buf, now, o.size)
		buf = append(buf, `"}`+chunkEnd...)
		if _, err := w.Write(buf); err != nil || flush() != nil {
			return
		}
		buf = buf[:0]
	}
	end(w, o)
}

// end finishes an answer.
func end(w io.Writer, o order) {
	fmt.Fprint(w, `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","model":"`+modelID+`","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","model":"`+modelID+`","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", o.tokens, o.tokens+10)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
