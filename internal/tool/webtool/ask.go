package webtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

// newSearchClient returns a client that stays at the address it is sent to: a redirect keeps
// every header but the standard ones, so it would carry the key along.
func newSearchClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			first := via[0].URL
			if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || r.Method != via[0].Method {
				return errAway
			}
			if len(via) > MaxRedirects {
				return fmt.Errorf("it redirects more than %d times; the user has to correct web.search.url", MaxRedirects)
			}
			return nil
		},
	}
}

// ask sends a query and returns what was found, the best first.
func (s *search) ask(ctx context.Context, key string, in searchParams) (hits []hit, err error) {
	req, err := s.request(ctx, key, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "roost (search tool)")
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok { // whose text holds the query
			err = ue.Err
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if err := s.accept(resp.StatusCode); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("its answer broke off: %w", err)
	case len(body) > MaxBody:
		return nil, fmt.Errorf("its answer is larger than %s; ask for fewer results", tool.Size(MaxBody))
	}
	return s.decode(body)
}

// request returns the request by which a provider is asked.
func (s *search) request(ctx context.Context, key string, in searchParams) (*http.Request, error) {
	count := strconv.Itoa(in.Count)
	switch s.opt.Provider {
	case SearXNG:
		if s.opt.URL == "" {
			return nil, errors.New("its address is not known; the user has to set web.search.url")
		}
		return get(ctx, s.opt.URL+"/search", url.Values{"q": {in.Query}, "format": {"json"}})
	case Brave:
		req, err := get(ctx, s.base("https://api.search.brave.com")+"/res/v1/web/search", url.Values{"q": {in.Query}, "count": {count}, "text_decorations": {"false"}})
		if err == nil {
			req.Header.Set("X-Subscription-Token", key)
		}
		return req, err
	case Tavily:
		body, err := json.Marshal(map[string]any{"query": in.Query, "max_results": in.Count})
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base("https://api.tavily.com")+"/search", bytes.NewReader(body))
		if err != nil {
			return nil, errURL
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		return req, nil
	}
	return nil, errProvider
}

var errProvider = errors.New("not a provider that is known; the user has to correct web.search.provider")

func get(ctx context.Context, address string, query url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, errURL // the parser's own error would quote the address
	}
	return req, nil
}

func (s *search) base(own string) string {
	if s.opt.URL != "" {
		return s.opt.URL
	}
	return own
}

// accept says what a status means. The body of a refusal is not shown: it is not the model's
// to act upon.
func (s *search) accept(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusForbidden && s.opt.Provider == SearXNG:
		return errNoJSON
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errRefused
	case status == http.StatusTooManyRequests:
		return errOften
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Errorf("there is no search at its address (status %d); the user has to check web.search.url", status)
	}
	return fmt.Errorf("it answers with status %d %s; try other words, or later", status, http.StatusText(status))
}
