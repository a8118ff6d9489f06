// Package anthropic speaks Anthropic's Messages dialect, which some other providers offer
// too: between [provider.Request] and the wire, and back (SPEC cursor 10.3). Thinking
// blocks go back exactly as they came, and only to the model that made them, because their
// signatures break otherwise.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
)

// apiVersion is the version of the dialect that this package speaks.
const apiVersion = "2023-06-01"

// Options describe a provider. Name and BaseURL are required; see [httpcall.Options].
type Options struct {
	Name    string
	BaseURL string // "https://api.anthropic.com"; the version may be given or left out
	Key     func(ctx context.Context) (string, error)
	Bearer  bool // send the key as a bearer token instead of x-api-key
	Headers map[string]string
	Idle    time.Duration // how long an answer may say nothing; 0 means 180 s
	HTTP    *http.Client  // nil means httpcall.NewHTTP()
}

// Model is a provider of Messages. It implements [provider.Model].
type Model struct {
	client *httpcall.Client
	bearer bool
}

// New returns a model provider. It does no I/O; a wrong base URL is reported by Stream.
func New(o Options) *Model {
	return &Model{bearer: o.Bearer, client: httpcall.New(httpcall.Options{
		Name: o.Name, BaseURL: o.BaseURL, Key: o.Key, Headers: o.Headers, Idle: o.Idle, HTTP: o.HTTP,
	}, "/messages")}
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		body, err := encode(req)
		if err != nil {
			yield(provider.Part{}, err)
			return
		}
		call := httpcall.Call{Body: body, Header: m.header, Decoder: newDecoder(req.Model.ID)}
		m.client.Stream(ctx, call)(yield)
	}
}

func (m *Model) header(key string) http.Header {
	h := http.Header{}
	h.Set("Anthropic-Version", apiVersion)
	switch {
	case key == "":
	case m.bearer:
		h.Set("Authorization", "Bearer "+key)
	default:
		h.Set("X-Api-Key", key)
	}
	return h
}
