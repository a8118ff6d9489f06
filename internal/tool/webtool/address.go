package webtool

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// check refuses URLs that are not plain addresses of the web.
func check(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%w: the scheme must be http or https", errURL)
	case u.User != nil: // "http://good.example@bad.example/"
		return fmt.Errorf("%w: a user name in it is not allowed", errURL)
	case host == "" || u.Opaque != "":
		return fmt.Errorf("%w: it has no host", errURL)
	case numeric(host):
		return fmt.Errorf("%w: %q is a number, not a host; write the address in its usual form", errURL, host)
	}
	return nil
}

// numeric reports hosts such as 2130706433, 0x7f.1 and 0177.0.0.1, which some resolvers take
// for IPv4 addresses: those whose last label is a number, but for usual addresses.
func numeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// Networks that are not public although they look like it: [netip.Addr] knows loopback,
// link-local, private and multicast ones.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"168.63.129.16/32", // metadata of Azure
	"2001::/23", "2001:db8::/32", "3fff::/20",
)

var (
	unicast6 = netip.MustParsePrefix("2000::/3") // all that is assigned for public use
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4   = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// Public is the policy that lets public addresses pass and nothing else: no loopback,
// private, link-local or shared one, no metadata service, and none of these inside an IPv6
// address.
func Public(ap netip.AddrPort) error {
	if !public(ap.Addr()) {
		return fmt.Errorf("%s is %w", ap.Addr(), errForbid)
	}
	return nil
}

func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if a.Is6() {
		b := a.As16()
		switch {
		case nat64.Contains(a):
			return public(netip.AddrFrom4([4]byte(b[12:16])))
		case sixTo4.Contains(a):
			return public(netip.AddrFrom4([4]byte(b[2:6])))
		case !unicast6.Contains(a):
			return false
		}
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}
