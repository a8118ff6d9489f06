package cli

import (
	"context"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// shownName is how many characters of a name or directory a table shows.
const shownName = 60

func (a *app) sessionsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "sessions", Short: "List sessions, the most recently updated first", Args: cobra.NoArgs,
		RunE: a.withClient(func(ctx context.Context, c *client.Client, _ []string) error { return a.list(ctx, c, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one roost.v1.SessionSummary a line")
	cmd.AddCommand(
		a.showCommand(), a.forkCommand(), a.rewindCommand(), a.compactCommand(), a.answerCommand(),
		a.exportCommand(), a.importCommand(),
		&cobra.Command{
			Use: "watch ID", Short: "Show what happens to a session until interrupted", Args: exactly("ID"),
			RunE: a.withClient(a.watchSession),
		},
		&cobra.Command{
			Use: "rename ID NAME", Short: "Give a session a name", Args: exactly("ID", "NAME"),
			RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
				return c.Rename(ctx, args[0], args[1])
			}),
		},
		&cobra.Command{
			Use: "delete ID", Short: "Stop a session and remove it for ever", Args: exactly("ID"),
			RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
				return c.Delete(ctx, args[0])
			}),
		},
	)
	return cmd
}

// withClient has f called with a client.
func (a *app) withClient(f func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, done, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer done()
		return f(cmd.Context(), c, args)
	}
}

func (a *app) list(ctx context.Context, c *client.Client, asJSON bool) error {
	t := a.table("ID", "UPDATED", "STATE", "MODEL", "NAME OR DIRECTORY")
	for s, err := range c.Sessions(ctx) {
		if err != nil {
			return err
		}
		if asJSON {
			a.out.printf("%s\n", message(s))
			continue
		}
		t.row(s.Id, s.UpdatedAt.AsTime().Local().Format("2006-01-02 15:04"), state(s.Active), s.Model, title(s))
	}
	if asJSON {
		return nil
	}
	return t.w.Flush()
}

func state(active bool) string {
	if active {
		return "running"
	}
	return "idle"
}

func title(s *roostv1.SessionSummary) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Cwd
}

// table writes columns.
type table struct {
	app *app
	w   *tabwriter.Writer
}

func (a *app) table(columns ...string) table {
	t := table{app: a, w: tabwriter.NewWriter(a.out.w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row writes a line. Cells are foreign text.
func (t table) row(cells ...string) {
	for i, c := range cells {
		end := "\t"
		if i == len(cells)-1 {
			end = "\n"
		}
		_, _ = t.w.Write([]byte(t.app.out.line(c, shownName) + end))
	}
}

func (a *app) showCommand() *cobra.Command {
	ids := false
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a session's transcript", Args: exactly("ID"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.showSession(ctx, c, args[0], ids)
		}),
	}
	cmd.Flags().BoolVar(&ids, "ids", false, "show the ids of messages, which fork and rewind take")
	return cmd
}

func (a *app) showSession(ctx context.Context, c *client.Client, id string, ids bool) error {
	head, items, err := c.Transcript(ctx, id)
	if err != nil {
		return err
	}
	a.err.printf("%s\n", a.err.style(dim, "session "+head.Id+"  "+a.err.line(head.Name+" "+head.Cwd, shownName)+"  "+head.Model+"  thinking "+head.Thinking+"  mode "+head.Mode))
	p := printer{out: a.out, aside: a.err, users: true, ids: ids, questions: true}
	p.update(&client.View{Session: head, Items: items})
	p.close()
	return nil
}

func (a *app) watchSession(ctx context.Context, c *client.Client, args []string) error {
	p := printer{out: a.out, aside: a.err, users: true, questions: true}
	defer p.close()
	var v client.View
	o := outage{err: a.err}
	for frame, err := range c.Watch(ctx, args[0], client.WatchOptions{Lost: func(err error, _ time.Duration) { o.lost(err) }}) {
		if err != nil {
			return err
		}
		o.back()
		p.frame(frame)
		v.Apply(frame)
		p.update(&v)
	}
	p.say("the session was deleted")
	return nil
}
