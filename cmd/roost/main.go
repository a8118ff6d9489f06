// Roost holds AI coding-agent sessions; see docs. Main joins the command line and the server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/roost-dev/roost/internal/cli"
	"github.com/roost-dev/roost/internal/sandbox"
	"github.com/roost-dev/roost/internal/server"
)

// version is set by the linker.
var version = "dev"

func main() {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.Server{Version: version, Serve: serve, Embedded: embedded, Trust: server.Trust}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func options(o cli.ServeOptions) server.Options {
	return server.Options{
		Config: o.Config, DataDir: o.Data, Socket: o.Socket, Listen: o.Listen, TLSCert: o.TLSCert, TLSKey: o.TLSKey,
		Logger: o.Logger, Version: o.Version,
	}
}

func serve(ctx context.Context, o cli.ServeOptions) error { return server.Run(ctx, options(o), o.Out) }

func embedded(ctx context.Context, o cli.ServeOptions) (string, func(), error) {
	s, err := server.Open(ctx, options(o))
	if err != nil {
		return "", nil, err
	}
	stop := func() { _ = s.Close(context.WithoutCancel(ctx)) } // a crash would do no harm either
	return "unix:" + s.Endpoint().HTTPSocket, stop, nil
}
