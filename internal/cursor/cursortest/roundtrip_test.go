package cursortest

import (
	"net/http"
	"sync"
	"time"
)

// roundTripper delays requests, and notes how many were on their way at once.
type roundTripper struct {
	http.RoundTripper
	delay time.Duration

	mu        sync.Mutex
	now, most int
}

func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	r.add(1)
	defer r.add(-1)
	<-time.After(r.delay)
	return r.RoundTripper.RoundTrip(req)
}

func (r *roundTripper) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now += n
	r.most = max(r.most, r.now)
}

func (r *roundTripper) CloseIdleConnections() {
	if t, ok := r.RoundTripper.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
