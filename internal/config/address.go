package config

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// These errors never quote the address: it may hold a password, or a variable's value.
var (
	errBaseURL  = errors.New("must be a URL such as https://host/v1")
	errURLUser  = errors.New("must not hold a user or password; use api_key or headers")
	errURLQuery = errors.New("must not have a query or fragment")
	errOrigin   = errors.New("must be an origin such as https://example.com or http://localhost:3000, without a path")
	errHost     = errors.New("must be a host name such as example.com or example.com:8443, without a scheme or path")
)

var dnsName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$`)

// parseBaseURL checks a provider's address and removes final slashes.
func parseBaseURL(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Opaque != "":
		return "", errBaseURL
	case u.User != nil:
		return "", errURLUser
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return "", errURLQuery
	}
	if _, err := parseHost(u.Host); err != nil {
		return "", errBaseURL
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// parseOrigin returns an origin as browsers write it: lower case, no default port.
func parseOrigin(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" ||
		u.Path != "" && u.Path != "/" || strings.ContainsAny(s, "?#") {
		return "", errOrigin
	}
	host, err := parseHost(u.Host)
	if err != nil {
		return "", errOrigin
	}
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return u.Scheme + "://" + host, nil
}

// parseHost returns "name", "name:port" or the like with an IP address, in lower case. It
// keeps no port that was not written.
func parseHost(s string) (string, error) {
	s = strings.ToLower(s)
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		name, port = s[:i], s[i:]
		if n, err := strconv.ParseUint(port[1:], 10, 16); err != nil || n == 0 {
			return "", errHost
		}
	}
	if inner, found := strings.CutPrefix(name, "["); found {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !ip.Is6() || ip.Zone() != "" || !strings.HasSuffix(inner, "]") {
			return "", errHost
		}
		return "[" + ip.String() + "]" + port, nil
	}
	if !dnsName.MatchString(name) || len(name) > 253 {
		return "", errHost
	}
	return name + port, nil
}

// warnCleartext warns of a key that would cross a network unencrypted.
func (d *decoder) warnCleartext(p Provider) {
	if cleartext(p.BaseURL) && (p.Key != nil || len(p.Headers) > 0) {
		d.warnf("provider %s: its key is sent unencrypted; use an https address", p.Name)
	}
}

// cleartext tells whether what is sent to an address crosses a network unencrypted.
func cleartext(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}
