package server

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/roost-dev/roost/internal/tool/mcptool"
)

// A person agrees in a browser; whoever does not know the state, or comes by another name,
// is turned away.
func TestConsent(t *testing.T) {
	c, err := openConsent(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	type outcome struct {
		grant mcptool.Grant
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		g, err := c.authorize(t.Context(), "srv", "https://auth.example/authorize?state=secret-state&x=1")
		done <- outcome{g, err}
	}()
	get := func(query, host string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.address()+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		resp, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := get("?state=guessed&code=c", ""); got != http.StatusBadRequest {
		t.Errorf("a guessed state: %d", got)
	}
	if got := get("?state=secret-state&code=c", "evil.example"); got != http.StatusForbidden {
		t.Errorf("a rebound name: %d", got)
	}
	for get("?state=secret-state&code=the-code&iss=https://auth.example", "") != http.StatusOK { // until it waits
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	if o := <-done; o.err != nil || o.grant.Code != "the-code" || o.grant.Issuer != "https://auth.example" || o.grant.State != "secret-state" {
		t.Errorf("got %+v", o)
	}
	if _, err := c.authorize(t.Context(), "srv", "https://auth.example/authorize"); err == nil {
		t.Error("an address without state was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.authorize(ctx, "srv", "https://auth.example/?state=s"); err == nil {
		t.Error("a person who does not come was not given up")
	}
}
