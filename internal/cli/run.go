package cli

import (
	"context"
	"fmt"
	"io"
	"os"
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
	// maxAttachment bounds an attached file, in bytes, as the server does.
	maxAttachment = 5 << 20
)

// runOptions are the flags of "roost run".
type runOptions struct {
	session, model, thinking, cwd, name string
	mode, approve                       oneOf
	attach                              []string
	json                                bool
}

func (a *app) runCommand() *cobra.Command {
	opt := runOptions{
		mode:    oneOf{values: []string{"agent", "ask", "plan", "debug"}},
		approve: oneOf{values: []string{approveAsk, approveAllow, approveDeny, approveWait}},
	}
	cmd := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Send one prompt and show the answer as it streams in",
		Long: `Run sends one prompt, to a new session or with --session to an old one, and shows what
happens until the run has ended. What the model says goes to standard output; its thinking,
tool calls, retries and errors go to standard error. With - as PROMPT it is read from standard
input. Ctrl-C aborts the run.

When the server wants to know whether a tool may run, --approve says what to do: ask (on a
terminal), allow, deny, or wait until another client answers. Without it, a terminal asks unless
--json is given, and anything else denies.

With --json, standard output has one JSON object a line, each with one of these members:
  started  sessionId, promptId, run: the prompt was accepted
  event    a roost.v1.Event: seq, at, and one of created, renamed, settingsChanged,
           modeChanged, itemsCopied, rewound, noteAdded, runStarted, runEnded, steerQueued,
           steerDelivered, abortRequested, passStarted, passEnded, blockStarted, delta,
           blockEnded, retrying, resumed, toolStarted, toolOutput, toolEnded, queryAnswered,
           compactionStarted, compactionEnded. A toolStarted with a query is a question; its
           itemId is what "roost sessions answer" takes. The item of a noteAdded is for the
           model, not for people.
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
	f.Var(&opt.mode, "mode", "what the model may do: everything, look only, plan only, look for faults first")
	f.Var(&opt.approve, "approve", "what to do about questions")
	f.BoolVar(&opt.json, "json", false, "print JSON lines")
	f.StringArrayVar(&opt.attach, "attach", nil, "a picture or text file to send along; may be repeated")
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
	attached, err := attachments(opt.attach)
	if err != nil {
		return err
	}
	c, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := &oneRun{client: c, attached: attached, show: a.show(opt.json), outage: outage{err: a.err}}
	if err := r.open(ctx, opt); err != nil {
		return err
	}
	r.approval = a.approval(opt, r)
	return r.obey(ctx, text)
}

// attachments reads the files that are sent along.
func attachments(paths []string) ([]*roostv1.Attachment, error) {
	var list []*roostv1.Attachment
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxAttachment {
			return nil, fmt.Errorf("%s: attach files of at most %d MiB", path, maxAttachment>>20)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list = append(list, &roostv1.Attachment{Name: path, Data: data})
	}
	return list, nil
}

func (a *app) approval(opt runOptions, r *oneRun) approval {
	p := approval{how: opt.approve.value, client: r.client, session: r.id, aside: a.err, say: r.show.say, stdin: a.stdin}
	switch {
	case p.how != "":
	case a.person && !opt.json:
		p.how = approveAsk
	default:
		p.how, p.explain = approveDeny, true
	}
	return p
}

// shower shows a run.
type shower interface {
	// begin names what need not be shown.
	begin(*client.View)
	started(sessionID, promptID string, run uint32)
	// frame is called before the frame becomes part of the view.
	frame(*roostv1.WatchResponse)
	update(*client.View)
	// say shows a line beside the run.
	say(string)
	result(*client.View)
}

func (a *app) show(json bool) shower {
	if json {
		return &jsonLines{out: a.out, aside: a.err}
	}
	return &textShower{printer: printer{out: a.out, aside: a.err}}
}

// textShower shows a run as text.
type textShower struct{ printer }

func (s *textShower) begin(v *client.View) { s.skip(v) }
func (s *textShower) started(sessionID, _ string, _ uint32) {
	s.say(s.aside.style(dim, "session "+s.aside.clean(sessionID)))
}
func (s *textShower) result(*client.View) { s.close() }

// oneRun is one prompt and what follows from it.
type oneRun struct {
	client   *client.Client
	attached []*roostv1.Attachment
	show     shower
	outage   outage
	approval approval
	id       string // of the session
	run      uint32
	view     client.View
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
	if err := r.setMode(ctx, opt); err != nil {
		return err
	}
	return r.look(ctx)
}

// look makes the session as it is now what the run begins with.
func (r *oneRun) look(ctx context.Context) error {
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
	return r.setMode(ctx, opt)
}

func (r *oneRun) setMode(ctx context.Context, opt runOptions) error {
	if opt.mode.value == "" {
		return nil
	}
	return r.client.SetMode(ctx, r.id, opt.mode.value)
}

// obey sends the prompt and shows what follows.
func (r *oneRun) obey(ctx context.Context, text string) error {
	return r.through(ctx, func(ctx context.Context) error {
		promptID := client.NewPromptID()
		p, err := r.client.Prompt(ctx, r.id, promptID, text, r.attached...)
		if err == nil {
			r.run = p.Run
			r.show.started(r.id, promptID, p.Run)
		}
		return err
	})
}

// through has a run begin and shows it to its end. When ctx ends it aborts the run and shows
// the end of that.
func (r *oneRun) through(ctx context.Context, begin func(context.Context) error) error {
	r.show.begin(&r.view)
	err := begin(ctx)
	if err == nil {
		err = r.follow(ctx)
	}
	if ctx.Err() == nil || err == nil {
		return r.finish(err)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortGrace)
	defer cancel()
	r.approval = approval{}
	if _, err := r.client.Abort(grace, r.id); err == nil && r.run > 0 {
		_ = r.follow(grace)
		r.show.result(&r.view)
	}
	return errInterrupted
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
