package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

const (
	// abortGrace is how long an interrupted run may take to end.
	abortGrace = 10 * time.Second
	// maxStdin bounds a prompt from standard input, in bytes. The server's limit is lower and
	// its message says what to do.
	maxStdin = 1 << 20
)

// runOptions are the flags of "roost run".
type runOptions struct {
	session, model, thinking, cwd, name string
	json                                bool
}

func (a *app) runCommand() *cobra.Command {
	var opt runOptions
	cmd := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Send one prompt and show the answer as it streams in",
		Long: `Run sends one prompt, to a new session or with --session to an old one, and shows what
happens until the run has ended. What the model says goes to standard output; its thinking,
tool calls, retries and errors go to standard error. With - as PROMPT it is read from standard
input. Ctrl-C aborts the run.

With --json, standard output has one JSON object a line, each with one of these members:
  started  sessionId, promptId, run: the prompt was accepted
  event    a roost.v1.Event: seq, at, and what has happened
  reset    a roost.v1.Reset: the state from which the events go on, after a long absence
  result   outcome, error, text (the last answer), usage (of the session): always the last line`,
		Example: "  roost run 'What does this project do?'\n  git diff | roost run -",
		Args:    exactly("PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.prompt(cmd.Context(), opt, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.session, "session", "", "id of the session to continue")
	f.StringVar(&opt.model, "model", "", "model, as provider/id")
	f.StringVar(&opt.thinking, "thinking", "", "thinking level: off, minimal, low, medium, high, xhigh or max")
	f.StringVar(&opt.cwd, "cwd", "", "working directory of a new session (default: this one)")
	f.StringVar(&opt.name, "name", "", "name of a new session")
	f.BoolVar(&opt.json, "json", false, "print JSON lines")
	cmd.MarkFlagsMutuallyExclusive("session", "cwd")
	cmd.MarkFlagsMutuallyExclusive("session", "name")
	return cmd
}

func (a *app) prompt(ctx context.Context, opt runOptions, text string) error {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin))
		if err != nil {
			return fmt.Errorf("read the prompt: %w", err)
		}
		text = string(b)
	}
	c, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := &oneRun{client: c, show: a.show(opt.json), outage: outage{err: a.err}}
	if err := r.open(ctx, opt); err != nil {
		return err
	}
	return r.obey(ctx, text)
}

// outage tells of a lost connection once, and once that it is back, however many attempts
// that takes.
type outage struct {
	err  *terminal
	down bool
}

func (o *outage) lost(err error, _ time.Duration) {
	if !o.down {
		o.err.printf("%s\n", o.err.style(yellow, "connection lost, trying again until it is back: "+o.err.clean(err.Error())))
	}
	o.down = true
}

// back is called with every frame.
func (o *outage) back() {
	if o.down {
		o.err.printf("%s\n", o.err.style(yellow, "connected again"))
	}
	o.down = false
}

// shower shows a run.
type shower interface {
	// begin names what need not be shown.
	begin(*client.View)
	started(sessionID, promptID string, run uint32)
	// frame is called before the frame becomes part of the view.
	frame(*roostv1.WatchResponse)
	update(*client.View)
	result(*client.View)
}

func (a *app) show(json bool) shower {
	if json {
		return &jsonLines{out: a.out}
	}
	return &textShower{printer: printer{out: a.out, aside: a.err}}
}

// textShower shows a run as text.
type textShower struct{ printer }

func (s *textShower) begin(v *client.View) { s.skip(v) }
func (s *textShower) started(sessionID, _ string, _ uint32) {
	s.say(s.aside.style(dim, "session "+s.aside.clean(sessionID)))
}
func (*textShower) frame(*roostv1.WatchResponse) {}
func (s *textShower) result(*client.View)        { s.close() }

// oneRun is one prompt and what follows from it.
type oneRun struct {
	client *client.Client
	show   shower
	outage outage
	id     string // of the session
	run    uint32
	view   client.View
}

// open makes or finds the session.
func (r *oneRun) open(ctx context.Context, opt runOptions) error {
	if opt.session == "" {
		return r.create(ctx, opt)
	}
	r.id = opt.session
	if opt.model != "" {
		if err := r.client.SetModel(ctx, r.id, opt.model); err != nil {
			return err
		}
	}
	if opt.thinking != "" {
		if err := r.client.SetThinking(ctx, r.id, opt.thinking); err != nil {
			return err
		}
	}
	s, err := r.client.Session(ctx, r.id, 0, 1)
	if err != nil {
		return err
	}
	r.view = client.View{Session: s.Session, Position: s.Position, First: int(s.Session.ItemCount)}
	return nil
}

func (r *oneRun) create(ctx context.Context, opt runOptions) error {
	dir := opt.cwd
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	s, err := r.client.Create(ctx, &roostv1.CreateSessionRequest{Cwd: dir, Name: opt.name, Model: opt.model, Thinking: opt.thinking})
	if err != nil {
		return err
	}
	r.id, r.view = s.Session.Id, client.View{Session: s.Session, Position: s.Position}
	return nil
}

// obey sends the prompt and shows what follows. When ctx ends it aborts the run and shows
// its end.
func (r *oneRun) obey(ctx context.Context, text string) error {
	promptID := client.NewPromptID()
	r.show.begin(&r.view)
	p, err := r.client.Prompt(ctx, r.id, promptID, text)
	if err == nil {
		r.run = p.Run
		r.show.started(r.id, promptID, p.Run)
		err = r.follow(ctx)
	}
	if ctx.Err() == nil || err == nil {
		return r.finish(err)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortGrace)
	defer cancel()
	if _, err := r.client.Abort(grace, r.id); err == nil && r.run > 0 {
		_ = r.follow(grace)
		r.show.result(&r.view)
	}
	return errInterrupted
}

// follow shows what happens until the run has ended.
func (r *oneRun) follow(ctx context.Context) error {
	for frame, err := range r.client.Watch(ctx, r.id, client.WatchOptions{From: r.view.Position, Lost: r.outage.lost}) {
		if err != nil {
			return err
		}
		r.outage.back()
		r.show.frame(frame)
		r.view.Apply(frame)
		r.show.update(&r.view)
		switch {
		case r.view.Gone:
			return &client.Error{Kind: client.NotFound, Message: "the session was deleted"}
		case r.view.Session.GetLastRun().GetId() >= r.run:
			return nil
		}
	}
	return nil
}

// finish says how the run ended.
func (r *oneRun) finish(err error) error {
	if err != nil {
		return err
	}
	r.show.result(&r.view)
	last := r.view.Session.LastRun
	switch last.GetOutcome() {
	case roostv1.Outcome_OUTCOME_ABORTED:
		return errInterrupted
	case roostv1.Outcome_OUTCOME_FAILED:
		return errRunFailed
	case roostv1.Outcome_OUTCOME_COMPLETED, roostv1.Outcome_OUTCOME_UNSPECIFIED:
	}
	return nil
}
