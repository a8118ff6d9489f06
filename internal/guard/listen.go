package guard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// CheckListen refuses a TCP address, "host:port", beyond loopback unless the listener has
// TLS or the user accepted the danger. An empty host, like 0.0.0.0, is every network of the
// machine; a name other than localhost may be anything. Port 0 is allowed.
func CheckListen(addr string, tls, insecure bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q: write host:port, such as 127.0.0.1:7777: %w", addr, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen address %q: the port must be a number up to 65535", addr)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() || tls || insecure {
		return nil
	}
	return fmt.Errorf("listen address %q is reachable from other machines: use 127.0.0.1, or set up TLS, or accept that keys and conversations cross the network readable with http.insecure_bind", addr)
}

// LimitBody returns a handler whose requests have bodies of at most limit bytes. A longer
// one that says so is answered 413; reading past the limit of another gives an
// [*http.MaxBytesError] and closes the connection. Except are paths, compared exactly, whose
// handlers limit bodies themselves, as streams and uploads need it.
func LimitBody(limit int64, next http.Handler, except ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(except, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > limit {
			http.Error(w, fmt.Sprintf("body is larger than %d bytes", limit), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}
