package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Subprotocol is the WebSocket subprotocol of the pi front end. A browser cannot set
// headers on a WebSocket, so it offers two subprotocols, "pi.v1" and its token.
const Subprotocol = "pi.v1"

const (
	protocolHeader = "Sec-Websocket-Protocol"
	maxToken       = 4096 // bytes; longer ones are not worth hashing
)

// authenticate returns the name of the client whose token is in r. A request that carries
// an Authorization header is judged by that alone. The query is never looked at: URLs end
// up in logs and histories.
func (g *Guard) authenticate(r *http.Request) (string, bool) {
	if headers := r.Header.Values("Authorization"); len(headers) > 0 {
		scheme, token, found := strings.Cut(headers[0], " ")
		if len(headers) > 1 || !found || !strings.EqualFold(scheme, "Bearer") {
			return "", false
		}
		return g.client(token)
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", false
	}
	offered := offeredProtocols(r)
	if len(offered) != 2 || offered[0] != Subprotocol {
		return "", false
	}
	return g.client(offered[1])
}

// offeredProtocols returns the WebSocket subprotocols that a client offers, in order.
func offeredProtocols(r *http.Request) []string {
	offered := strings.Split(strings.Join(r.Header.Values(protocolHeader), ","), ",")
	for i := range offered {
		offered[i] = strings.TrimSpace(offered[i])
	}
	return offered
}

// client finds the client of a token. Digests of one length are compared, each one whole
// and all of them, so that the time tells nothing about how near a guess was.
func (g *Guard) client(token string) (string, bool) {
	if token == "" || len(token) > maxToken {
		return "", false
	}
	digest := sha256.Sum256([]byte(token))
	match := -1
	for i := range g.clients {
		same := subtle.ConstantTimeCompare(digest[:], g.clients[i].SHA256[:])
		match = subtle.ConstantTimeSelect(same, i, match)
	}
	if match < 0 {
		return "", false
	}
	return g.clients[match].Name, true
}
