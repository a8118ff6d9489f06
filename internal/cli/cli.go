// Package cli is the command line: a client of roost's own API, and the way to start the
// server. It turns arguments into calls, frames into text or JSON lines, and errors into exit
// codes:
//
//	arguments ─▶ command ─▶ client.Client ─▶ frames ─▶ View ─▶ printer ─▶ terminal
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/config"
)

// The exit codes.
const (
	ExitOK          = 0   // what was asked is done
	ExitFailed      = 1   // the run failed, or anything else did
	ExitUsage       = 2   // the arguments make no sense
	ExitUnreachable = 3   // no server can be reached
	ExitInterrupted = 130 // the run was aborted, or the command interrupted
)

// Run obeys args, without the program's name, and returns the exit code. When ctx ends, a run
// in progress is aborted first.
func Run(ctx context.Context, server Server, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{server: server, stdin: stdin, out: newTerminal(stdout), err: newTerminal(stderr)}
	a.person = a.err.tty && isTerminal(stdin)
	return a.run(ctx, args)
}

// app is one use of the command line.
type app struct {
	server   Server
	stdin    io.Reader
	out, err *terminal
	choice   choice
	address  string // of the server, when the user names one
	person   bool   // somebody reads err and types into stdin
	began    bool   // the arguments made sense
}

var (
	// errInterrupted ends a command that was interrupted, or whose run was aborted.
	errInterrupted = errors.New("interrupted")
	// errRunFailed ends a command whose run failed, which it has shown.
	errRunFailed = errors.New("the run failed")
)

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.out.w)
	root.SetErr(a.err.w)
	err := root.ExecuteContext(ctx)
	own, said := errors.AsType[exitError](err)
	switch {
	case err == nil:
		return ExitOK
	case said:
		return int(own)
	case !a.began:
		a.err.printf("roost: %v\nRun 'roost --help' for usage.\n", err)
		return ExitUsage
	case errors.Is(err, errInterrupted), ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return ExitInterrupted
	case errors.Is(err, errRunFailed):
		return ExitFailed
	}
	a.err.printf("%s\n", a.err.style(red, "roost: "+a.err.clean(err.Error())))
	if client.KindOf(err) == client.Unreachable {
		return ExitUnreachable
	}
	return ExitFailed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "roost",
		Short: "Holds AI coding-agent sessions that outlive their clients",
		Long: `roost holds AI coding-agent sessions. Commands talk to the server that runs on the data
directory, or start one for as long as they take.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no server can be reached, 130 aborted; those of
doctor are in its help.
Environment: ROOST_SERVER and ROOST_TOKEN name a server elsewhere; NO_COLOR turns colours off.`,
		SilenceUsage: true, SilenceErrors: true,
		RunE: help, Args: cobra.NoArgs,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.choice.config, "config", "", "configuration file (default "+config.DefaultPath()+")")
	flags.StringVar(&a.choice.data, "data", "", "data directory (default "+config.DefaultDataDir()+")")
	flags.StringVar(&a.address, "server", "", "server address: http://HOST:PORT, https://HOST:PORT or unix:PATH")
	root.AddCommand(a.runCommand(), a.sessionsCommand(), a.exportCommand(), a.importCommand(), a.modelsCommand(), a.schemaCommand(), a.serveCommand(), a.trustCommand(), a.versionCommand(),
		a.doctorCommand(), a.backupCommand(), a.restoreCommand(), a.replayCommand())
	a.note(root)
	return root
}

// note makes every command note that it began, which cobra lets it do only when its arguments
// and flags are right.
func (a *app) note(cmd *cobra.Command) {
	if f := cmd.RunE; f != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.began = true
			return f(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		a.note(c)
	}
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { a.out.printf("roost %s\n", a.server.Version) },
	}
}

// exactly is cobra.ExactArgs with names for what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s needs %d argument(s) %v, not %d", cmd.CommandPath(), len(names), names, len(args))
		}
		return nil
	}
}
