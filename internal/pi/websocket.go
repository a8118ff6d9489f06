package pi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Subprotocol is the WebSocket sub-protocol of version 1.
const Subprotocol = "pi.v1"

const (
	pingEvery   = 30 * time.Second
	pingTimeout = 60 * time.Second
)

// WebSocket serves connections over WebSocket: binary messages carry the byte stream, and
// where one ends means nothing. Whoever mounts it has checked Host, Origin and token.
func (s *Server) WebSocket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Upgrade", "websocket")
			http.Error(w, "this is a WebSocket endpoint", http.StatusUpgradeRequired)
			return
		}
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			Subprotocols:       []string{Subprotocol},
			InsecureSkipVerify: true, // the guard has checked Origin, by the configured list
			CompressionMode:    websocket.CompressionDisabled,
		})
		if err != nil {
			s.opt.Logger.Info("websocket refused", slog.Any("error", err))
			return
		}
		// Not the request's context: it ends when the handler's server shuts down, and the
		// connection ends with Close.
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		go keepAlive(ctx, ws)
		s.ServeConn(wsConn{Conn: websocket.NetConn(ctx, ws, websocket.MessageBinary), ws: ws})
	})
}

// wsConn is a WebSocket connection as the byte stream that it carries.
type wsConn struct {
	net.Conn
	ws *websocket.Conn
}

// CloseWrite says goodbye: the close handshake, for which a client has a few seconds.
func (c wsConn) CloseWrite() error { return c.ws.Close(websocket.StatusNormalClosure, "") }

// Close ends the connection at once; it waits for nobody.
func (c wsConn) Close() error { return c.ws.CloseNow() }

// keepAlive closes a connection whose client does not answer any more: the protocol itself
// has no heartbeat (trap 52).
func keepAlive(ctx context.Context, ws *websocket.Conn) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		err := ws.Ping(ping)
		cancel()
		if err != nil {
			_ = ws.CloseNow()
			return
		}
	}
}
