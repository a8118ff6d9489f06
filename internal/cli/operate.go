package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/internal/backup"
	"github.com/roost-dev/roost/internal/doctor"
	"github.com/roost-dev/roost/internal/replay"
	"github.com/roost-dev/roost/internal/session"
)

// exitError ends a command with a code of its own. What is to be said has been said.
type exitError int

// Error is for whoever takes it for another error.
func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// The exit codes of doctor.
const (
	exitFindings  exitError = 1
	exitUnchecked exitError = 2
)

func (a *app) doctorCommand() *cobra.Command {
	repair := false
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with the data directory, explain it, and repair what is safe", Args: cobra.NoArgs,
		Long: `Checks the configuration, the data directory, the event log and every session in it, and the
files that sessions refer to. While a server runs, nothing can be repaired, but all is checked.

Exit codes: 0 nothing but notes, 1 something was found (also if it was repaired), 2 it could not be checked.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), repair) },
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what can be repaired; damaged sessions are moved to DATA/damaged")
	return cmd
}

func (a *app) doctor(ctx context.Context, repair bool) error {
	opt := doctor.Options{Dir: a.dataDir(), Repair: repair}
	if cfg, err := a.choice.load(); err != nil {
		opt.Config = err
	} else {
		opt.Warn = cfg.Warnings
	}
	report, err := doctor.Check(ctx, opt)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.err.printf("roost: could not check: %s\n", a.err.clean(err.Error()))
		return exitUnchecked
	}
	for _, f := range report.Findings {
		a.out.printf("%s\n", a.finding(f))
	}
	a.out.printf("checked %s: %d sessions, %d blobs they refer to; %d notes, %d findings\n",
		a.out.clean(opt.Dir), report.Sessions, report.Blobs, len(report.Findings)-report.Bad(), report.Bad())
	if report.Bad() > 0 {
		return exitFindings
	}
	return nil
}

// finding is a finding as one line.
func (a *app) finding(f doctor.Finding) string {
	style := map[doctor.Severity]string{doctor.Note: dim, doctor.Warning: yellow, doctor.Problem: red}[f.Severity]
	line := a.out.style(style, fmt.Sprintf("%-8s", f.Severity)) + a.out.clean(f.What)
	switch {
	case f.Done != "":
		line += a.out.clean(". Repaired: " + f.Done)
	case f.Do != "":
		line += a.out.clean(". What to do: " + f.Do)
	}
	return line
}

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup DEST", Short: "Copy all sessions to a new directory, also while the server runs", Args: exactly("DEST"),
		Long: `Copies the data directory to DEST, which must not exist. The server need not stop. The token and
the logins of MCP servers are left out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dest, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			made, err := backup.Make(cmd.Context(), a.dataDir(), dest, a.server.Version, time.Now())
			if err != nil {
				return err
			}
			a.out.printf("backup %s: %d files, %d KiB\n", a.out.clean(dest), len(made.Files), (made.Bytes()+1023)>>10)
			for _, s := range made.Skipped {
				a.err.printf("left out: %s\n", a.err.clean(s))
			}
			if len(made.Skipped) > 0 {
				return errors.New("the backup is whole but for what was left out: run roost doctor")
			}
			return nil
		},
	}
}

func (a *app) restoreCommand() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use: "restore SRC", Short: "Make the data directory --data from a backup", Args: exactly("SRC"),
		Long: `Makes the data directory, which must not exist or be empty, from the backup SRC. Every file is
verified first. Clients load their sessions again, as a backup may have less than they have seen.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if check {
				m, err := backup.Verify(cmd.Context(), args[0])
				if err == nil {
					a.out.printf("the backup of %s is good: %d files, %d KiB\n", m.MadeAt.Format(time.RFC3339), len(m.Files), (m.Bytes()+1023)>>10)
				}
				return err
			}
			dir, err := filepath.Abs(a.dataDir())
			if err != nil {
				return err
			}
			m, err := backup.Restore(cmd.Context(), args[0], dir, time.Now())
			if err != nil {
				return err
			}
			a.out.printf("restored %s from the backup of %s: %d files\n", a.out.clean(dir), m.MadeAt.Format(time.RFC3339), len(m.Files))
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only verify the backup")
	return cmd
}

func (a *app) replayCommand() *cobra.Command {
	format := oneOf{value: replay.Formats()[0], values: replay.Formats()}
	cmd := &cobra.Command{
		Use: "replay ID", Short: "Print a session's events from the data directory, or what its clients are shown, as JSON lines", Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return replay.Print(cmd.Context(), a.dataDir(), session.ID(args[0]), format.value, a.out.w)
		},
	}
	cmd.Flags().Var(&format, "format", "what to print")
	return cmd
}
