package webtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
	"unicode/utf8"
)

// newClient returns a client that opens connections only where allow lets it, follows few
// redirects, and keeps no cookies and no idle connections.
func newClient(allow Policy) *http.Client {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		// Control sees the resolved address, right before the connection is opened to it.
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", errURL, address)
			}
			return allow(netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > MaxRedirects {
				return fmt.Errorf("%w: it was redirected more than %d times", errURL, MaxRedirects)
			}
			if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme == "http" {
				return fmt.Errorf("%w: it was redirected from https to http", errURL)
			}
			r.Header.Del("Referer")
			return check(r.URL)
		},
	}
}

// get fetches a page.
func (f *fetch) get(ctx context.Context, address string) (p page, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return page{}, fmt.Errorf("%w: it cannot be parsed", errURL)
	}
	if err := check(u); err != nil {
		return page{}, err
	}
	u.Fragment = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", errURL, err)
	}
	req.Header.Set("User-Agent", "roost (fetch tool)")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1")
	resp, err := f.client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return page{}, fmt.Errorf("%s: %w", u.Host, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	return read(resp)
}

// read takes the body, whatever the status: the page of an error often says more.
func read(resp *http.Response) (page, error) {
	kind, err := kindOf(resp.Header.Get("Content-Type"))
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", resp.Request.URL.Host, err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return page{}, fmt.Errorf("%s: the page broke off: %w", resp.Request.URL.Host, err)
	}
	p := page{url: resp.Request.URL, status: resp.StatusCode, cut: len(body) > MaxBody}
	body = whole(body[:min(len(body), MaxBody)], p.cut)
	p.text, err = textOf(body, kind, resp.Header.Get("Content-Type"), resp.Request.URL)
	return p, err
}

// whole drops the half character that a cut may have left, so that a page in UTF-8 is still
// taken for one.
func whole(body []byte, cut bool) []byte {
	if !cut {
		return body
	}
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if i := len(body) - n; utf8.RuneStart(body[i]) {
			if !utf8.FullRune(body[i:]) {
				return body[:i]
			}
			break
		}
	}
	return body
}
