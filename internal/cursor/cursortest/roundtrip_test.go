package cursortest

import "net/http"

// roundTripper counts the requests that are on their way.
type roundTripper struct {
	http.RoundTripper
	count func(delta int)
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	r.count(1)
	defer r.count(-1)
	return r.RoundTripper.RoundTrip(req)
}

func (r roundTripper) CloseIdleConnections() {
	r.RoundTripper.(*http.Transport).CloseIdleConnections()
}
