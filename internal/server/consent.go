package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/guard"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

const consentPath = "/mcp/callback"

// consent lets a person agree to what an MCP server may do: it tells the address to open, and
// takes the browser that comes back from there, on a loopback port of its own. Whoever comes
// must know the state, which only the address that was told holds. It is safe for concurrent
// use.
type consent struct {
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]chan mcptool.Grant // by state
}

func openConsent(log *slog.Logger) (*consent, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &consent{log: log, listener: l, waiting: make(map[string]chan mcptool.Grant)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+consentPath, c.callback)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: guard.HeaderTimeout, MaxHeaderBytes: guard.MaxHeaderBytes}
	c.serving.Go(func() { _ = c.server.Serve(l) }) // ends with close
	return c, nil
}

// address is where browsers come back to.
func (c *consent) address() string { return "http://" + c.listener.Addr().String() + consentPath }

// authorize implements [mcptool.Options.Authorize].
func (c *consent) authorize(ctx context.Context, server, address string) (mcptool.Grant, error) {
	u, err := url.Parse(address)
	if err != nil {
		return mcptool.Grant{}, err
	}
	state := u.Query().Get("state")
	if state == "" {
		return mcptool.Grant{}, errors.New("the authorization server's address has no state")
	}
	granted := make(chan mcptool.Grant, 1)
	c.mu.Lock()
	c.waiting[state] = granted
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, state)
	}()
	c.log.Warn("open this address to let roost use the MCP server", slog.String("server", server), slog.String("address", address))
	select {
	case g := <-granted:
		return g, nil
	case <-ctx.Done():
		return mcptool.Grant{}, ctx.Err()
	}
}

func (c *consent) callback(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.Host != c.listener.Addr().String() {
		http.Error(w, "this address is not for you", http.StatusForbidden)
		return
	}
	q := r.URL.Query()
	c.mu.Lock()
	granted := c.waiting[q.Get("state")]
	c.mu.Unlock()
	if granted == nil {
		http.Error(w, "nobody waits for this answer, or no longer", http.StatusBadRequest)
		return
	}
	select {
	case granted <- mcptool.Grant{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}:
	default: // it has come already
	}
	fmt.Fprintln(w, "Thank you. You can close this page.")
}

func (c *consent) close(context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	c.serving.Wait()
	return err
}
