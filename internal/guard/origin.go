package guard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// hostAllowed reports whether the Host that the client asked for is one of ours. A page
// whose name was made to resolve to this machine (DNS rebinding) gives itself away here.
func (g *Guard) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if host == "" {
		return false
	}
	name, port := splitHost(host)
	if slices.Contains(g.hosts, host) || name != "" && slices.Contains(g.hosts, name) {
		return true
	}
	if port == "" { // as browsers write the default port
		port = "80"
		if r.TLS != nil {
			port = "443"
		}
	}
	if port != strconv.Itoa(g.port) {
		return false
	}
	if name == "localhost" {
		return true
	}
	ip, ok := parseIP(name)
	return ok && (ip.IsLoopback() || ip == localIP(r))
}

// splitHost splits "name[:port]" and keeps the brackets of an IPv6 address. A port that is
// not a number is part of a name that nothing matches.
func splitHost(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, ""
	}
	return host[:i], host[i+1:]
}

// parseIP reads the address of a Host: IPv6 in brackets, IPv4 without, no zone.
func parseIP(name string) (netip.Addr, bool) {
	inner, bracketed := strings.CutPrefix(name, "[")
	if bracketed {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return netip.Addr{}, false
		}
	}
	ip, err := netip.ParseAddr(inner)
	if err != nil || ip.Zone() != "" || ip.Is4() == bracketed {
		return netip.Addr{}, false
	}
	return ip.Unmap(), true
}

// localIP is the address of this machine that the client is connected to.
func localIP(r *http.Request) netip.Addr {
	tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// originAllowed reports whether the page behind a request, if any, may make it, and its
// origin when that is a configured one. Origins are compared whole: browsers write them in
// one form, and any other form is not a browser's.
func (g *Guard) originAllowed(r *http.Request) (foreign string, ok bool) {
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return "", false
	}
	if len(origins) == 1 {
		if slices.Contains(g.origins, origins[0]) {
			return origins[0], true
		}
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		if origins[0] != scheme+strings.ToLower(r.Host) {
			return "", false
		}
	}
	// Browsers leave Origin out of many GET requests, but say where those come from. Other
	// ports of localhost are "same-site", and no more trusted than other sites.
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return "", false
		}
	}
	return "", true
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers for an origin that is allowed. Credentials are never allowed, because
// tokens are not cookies.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Last-Event-ID, X-User-Agent")
	h.Set("Access-Control-Max-Age", "600")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
}
