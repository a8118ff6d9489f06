package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// The commands that change what a session has been, and what it waits for.

func (a *app) forkCommand() *cobra.Command {
	var before, name string
	cmd := &cobra.Command{
		Use: "fork ID", Short: "Make a session that begins like another, and print its id", Args: exactly("ID"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.Fork(ctx, args[0], before, name)
			if err == nil {
				a.out.printf("%s\n", a.out.text(f.Session.Id))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&before, "before", "", "end the copy before the message with this id, as 'show --ids' has it")
	cmd.Flags().StringVar(&name, "name", "", "name of the new session (default: that of the old one)")
	return cmd
}

func (a *app) rewindCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rewind ID ITEM", Short: "Take a message, as 'show --ids' has it, and all after it away; files stay", Args: exactly("ID", "ITEM"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			return c.Rewind(ctx, args[0], args[1])
		}),
	}
}

func (a *app) compactCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compact ID", Short: "Have old items summarised for the model, which then has room again", Args: exactly("ID"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			r := &oneRun{client: c, show: a.show(false), outage: outage{err: a.err}, id: args[0]}
			if err := r.look(ctx); err != nil {
				return err
			}
			return r.through(ctx, func(ctx context.Context) error {
				started, err := c.Compact(ctx, r.id)
				r.run = started.GetRun()
				return err
			})
		}),
	}
}

func (a *app) answerCommand() *cobra.Command {
	scope, reason := oneOf{values: []string{"once", "session", "always"}}, ""
	cmd := &cobra.Command{
		Use: "answer ID CALL allow|deny", Short: "Say whether a tool may run; the first answer counts",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 && args[2] != approveAllow && args[2] != approveDeny {
				return fmt.Errorf("answer %q: use allow or deny", args[2])
			}
			return exactly("ID", "CALL", "allow|deny")(cmd, args)
		},
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			_, err := c.Answer(ctx, &roostv1.AnswerRequest{
				SessionId: args[0], ItemId: args[1], Allow: args[2] == approveAllow, Reason: reason, Scope: scopes[scope.value],
			})
			return err
		}),
	}
	cmd.Flags().Var(&scope, "scope", "how far allow goes (default once)")
	cmd.Flags().StringVar(&reason, "reason", "", "what the model is told with deny")
	return cmd
}

var scopes = map[string]roostv1.Scope{
	"": roostv1.Scope_SCOPE_ONCE, "once": roostv1.Scope_SCOPE_ONCE,
	"session": roostv1.Scope_SCOPE_SESSION, "always": roostv1.Scope_SCOPE_ALWAYS,
}
