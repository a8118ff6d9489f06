package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/config"
)

// probeTimeout is how long a server may take to say who it is.
const probeTimeout = 5 * time.Second

// connect returns a client of the server that the user names, of the one that runs on the
// data directory, or of one that is started for this command. Done releases it.
func (a *app) connect(ctx context.Context) (c *client.Client, done func(), err error) {
	address := a.address
	if address == "" {
		address = os.Getenv("ROOST_SERVER")
	}
	if address != "" {
		// The token of this machine's server is nobody else's business.
		c, err = client.New(client.Options{Address: address, Token: os.Getenv("ROOST_TOKEN")})
		if err == nil {
			err = probe(ctx, c)
		}
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	c, err = a.local(ctx)
	if err == nil {
		return c, c.Close, nil
	}
	if client.KindOf(err) != client.Unreachable {
		return nil, nil, err
	}
	return a.embedded(ctx)
}

func probe(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, &client.Error{
		Kind: client.Unreachable, Message: fmt.Sprintf("the server does not answer within %v", probeTimeout), Retry: true,
	})
	defer cancel()
	_, err := c.Server(ctx)
	return err
}

func (a *app) dataDir() string {
	if a.choice.data != "" {
		return a.choice.data
	}
	return config.DefaultDataDir()
}

// local finds the server that runs on the data directory.
func (a *app) local(ctx context.Context) (*client.Client, error) {
	dir := a.dataDir()
	c, err := client.FromDataDir(dir)
	if client.KindOf(err) == client.Unreachable {
		c, err = client.New(client.Options{Address: "unix:" + config.DefaultSocket(dir) + ".http"})
	}
	if err != nil {
		return nil, err
	}
	return c, probe(ctx, c)
}

// embedded starts a server that goes on until done, also when ctx ends: it is needed to abort
// what runs.
func (a *app) embedded(ctx context.Context) (*client.Client, func(), error) {
	address, stop, err := a.embed(context.WithoutCancel(ctx))
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(client.Options{Address: address})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return c, func() { c.Close(); stop() }, nil
}
