// Package openaichat speaks OpenAI's Chat Completions dialect, which most providers and
// local servers offer: between [provider.Request] and the wire, and back. The request is
// strict; the answer is read with every deviation that compatible servers are known for
// (SPEC cursor 10.1).
package openaichat

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
)

// Options describe a provider. Name and BaseURL are required; see [httpcall.Options].
type Options struct {
	Name    string
	BaseURL string // "https://api.openai.com/v1"; the version may be left out
	Key     func(ctx context.Context) (string, error)
	Headers map[string]string

	// MaxTokensField is the parameter that limits the output: "max_tokens" or
	// "max_completion_tokens". Empty means: chosen by the model's name.
	MaxTokensField string

	Idle time.Duration // how long an answer may say nothing; 0 means 180 s
	HTTP *http.Client  // nil means httpcall.NewHTTP()
}

// Model is a provider of Chat Completions. It implements [provider.Model].
type Model struct {
	client *httpcall.Client
	quirks quirks
}

// New returns a model provider. It does no I/O; a wrong base URL is reported by Stream.
func New(o Options) *Model {
	return &Model{
		client: httpcall.New(httpcall.Options{
			Name: o.Name, BaseURL: o.BaseURL, Key: o.Key, Headers: o.Headers, Idle: o.Idle, HTTP: o.HTTP,
		}, "/chat/completions"),
		quirks: quirks{maxTokens: o.MaxTokensField, official: isOpenAI(o.BaseURL)},
	}
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		body, err := encode(req, m.quirks)
		if err != nil {
			yield(provider.Part{}, err)
			return
		}
		call := httpcall.Call{Body: body, Header: header, Decoder: newDecoder(req.Model.ID)}
		m.client.Stream(ctx, call)(yield)
	}
}

func header(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

func isOpenAI(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}
