package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/internal/config"
)

// Server is what the command line does not do itself. The composition root gives it; every
// field is required.
type Server struct {
	// Version of this program.
	Version string
	// Serve runs a server until ctx ends, and returns nil then.
	Serve func(ctx context.Context, opt ServeOptions) error
	// Embedded starts a server in this process, for one command. It returns an address as
	// client.Options has it, and a function that stops the server and waits for that.
	Embedded func(ctx context.Context, opt ServeOptions) (address string, stop func(), err error)
	// Trust lets the MCP servers of a project count, and returns what they run.
	Trust func(dataDir, projectDir string) (servers []string, err error)
}

// ServeOptions is what a server is started with.
type ServeOptions struct {
	Config  *config.Config // what the user has decided
	Data    string         // data directory
	Socket  string         // path of the Unix socket of pi's protocol; ".http" added, of roost's own API
	Listen  string         // address of the HTTP listener, "host:port"; empty for none
	TLSCert string         // PEM files for Listen; both or neither
	TLSKey  string
	Logger  *slog.Logger
	Out     io.Writer // for the line that says that the server is ready
	Version string
}

// choice is what flags say about the server.
type choice struct{ config, data, socket, listen, tlsCert, tlsKey string }

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the server until it is interrupted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := a.serveOptions()
			if err != nil {
				return err
			}
			opt.Logger, opt.Out = logger(opt.Config.Log, a.err.w), a.out.w
			return a.server.Serve(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.choice.socket, "socket", "", "Unix socket of pi's protocol; roost's own API is on the same path with .http added")
	f.StringVar(&a.choice.listen, "listen", "", "also listen for HTTP on HOST:PORT")
	f.StringVar(&a.choice.tlsCert, "tls-cert", "", "certificate of the HTTP listener, a PEM file")
	f.StringVar(&a.choice.tlsKey, "tls-key", "", "key of the certificate, a PEM file")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return cmd
}

// serveOptions joins flags, configuration and defaults.
func (a *app) serveOptions() (ServeOptions, error) {
	cfg, err := a.choice.load()
	if err != nil {
		return ServeOptions{}, err
	}
	data, err := filepath.Abs(a.dataDir())
	if err != nil {
		return ServeOptions{}, err
	}
	socket := a.choice.socket
	if socket == "" {
		socket = config.DefaultSocket(data)
	}
	return ServeOptions{
		Config: cfg, Data: data, Socket: socket, Listen: a.choice.listen,
		TLSCert: a.choice.tlsCert, TLSKey: a.choice.tlsKey, Version: a.server.Version,
		Logger: slog.New(slog.DiscardHandler), Out: io.Discard,
	}, nil
}

// load reads the configuration: the file that the user names, else the usual one if it is
// there, else the environment.
func (c choice) load() (*config.Config, error) {
	if c.config != "" {
		return config.Load(c.config)
	}
	cfg, err := config.Load(config.DefaultPath())
	if errors.Is(err, fs.ErrNotExist) {
		return config.FromEnv(os.Getenv)
	}
	return cfg, err
}

func logger(log config.Log, w io.Writer) *slog.Logger {
	opt := &slog.HandlerOptions{Level: log.Level}
	if log.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// embed starts a server for this command on a socket of its own: one that others could find
// would leave them in the middle of a run when this command ends.
func (a *app) embed(ctx context.Context) (address string, stop func(), err error) {
	opt, err := a.serveOptions()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "roost-")
	if err != nil {
		return "", nil, err
	}
	opt.Socket = filepath.Join(dir, "s")
	address, stopServer, err := a.server.Embedded(ctx, opt)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return address, func() {
		stopServer()
		_ = os.RemoveAll(dir) // what is left of it is in the system's folder for that
	}, nil
}
