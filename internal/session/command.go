package session

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on what a command may carry. What is larger belongs into a file of the workspace.
const (
	MaxPrompt   = 200 << 10 // bytes of a prompt's or steer's text
	MaxName     = 1 << 10   // bytes of a session's name
	MaxCwd      = 4 << 10   // bytes of a working directory
	MaxPromptID = 128       // bytes of a client's id of a prompt
	MaxQueue    = 100       // steers in a session's queue
	MaxFront    = 256       // things that front ends remember of a session
	MaxFrontKey = 256       // bytes of the key of one
	MaxFrontSet = 200 << 10 // bytes of one
)

// Command is a wish of a client.
type Command interface{ command() }

// Create makes a session. The caller has checked that Cwd is a directory and Model exists.
type Create struct {
	ID       ID
	Cwd      string
	Name     string
	Model    ModelRef
	Thinking Thinking
	Parent   ID
	Origin   string
	Remote   bool // Cwd is a directory of the client's machine, in its notation; it need not exist here
}

// Prompt starts a run. With the id of an earlier prompt it does nothing and succeeds, so that
// a client that never saw the answer may ask again.
type Prompt struct {
	ID      string
	Text    string
	Blocks  []Block // what is sent in place of Text when there is more: Text and Image
	Context Context // what the model is to know of the project; ignored when it knows it already
	Added   string  // what a hook adds for the model; may be empty
	Offer   string  // the blob with the tools that the client runs in this run; empty for those of the workspace
	Keep    []FrontSet
}

// Context is what a model is told of the environment and the project of a session.
type Context struct {
	Hash string // empty for nothing
	Text string
}

// Steer queues a message into the run in progress. Its ID works like a prompt's.
type Steer struct {
	ID   string
	Text string
}

// Abort ends the run in progress.
type Abort struct{}

// SetModel changes the model. Levels are the thinking levels that the model has, ascending;
// the session's level is clamped to them.
type SetModel struct {
	Model  ModelRef
	Levels []Thinking
}

// SetThinking changes the thinking level. Levels are those of the session's model.
type SetThinking struct {
	Thinking Thinking
	Levels   []Thinking
}

// Rename gives the session a name.
type Rename struct{ Name string }

// SetMode changes the mode. Text tells the model what that means.
type SetMode struct {
	Mode Mode
	Text string
}

// Answer answers the query of a call. Exactly one answer is taken.
type Answer struct {
	Call   CallID
	Allow  bool
	Reason string // for the model, when it is not allowed
	Scope  Scope  // how far it goes, when it is allowed
}

// Scope is how far an answer goes.
type Scope uint8

// The scopes.
const (
	Once    Scope = iota // this call only
	Session              // what the query offers, for the rest of the session
	Always               // the same, and in other sessions as well
)

// Rewind takes a user message and everything after it away.
type Rewind struct{ Item ItemID }

// Resume starts a run that takes up what the last one left unanswered. While a run is in
// progress, or when nothing is left, it does nothing and succeeds.
type Resume struct {
	Offer string
	Keep  []FrontSet
}

// Report is what a client that runs tools has to say, all of it at once. What concerns a call
// that has its result already, or that nobody knows, is passed over: the first result counts.
type Report struct {
	Issued []CallID
	Output []ToolOutput
	Ended  []ToolEnded
	Mode   Mode   // the mode from now on; empty for no change
	Offer  string // the tools of the run in progress from now on, with a Mode
	Keep   []FrontSet
}

// Tell tells the model, the next time it is asked, what a client did by itself.
type Tell struct{ Text string }

// Replace makes the first Keep items of the transcript followed by others its whole content.
// What it takes away begins with a message; what it adds has a result for every call.
type Replace struct {
	Keep   int
	Copies []ItemsCopied
}

// Compact has old items summarised, as far as Through, now. The caller has chosen it so that
// no call is parted from its result.
type Compact struct{ Through int }

func (Prompt) command()      {}
func (Steer) command()       {}
func (Abort) command()       {}
func (SetModel) command()    {}
func (SetThinking) command() {}
func (Rename) command()      {}
func (SetMode) command()     {}
func (Answer) command()      {}
func (Rewind) command()      {}
func (Compact) command()     {}
func (Resume) command()      {}
func (Report) command()      {}
func (Replace) command()     {}
func (Tell) command()        {}

// New returns the event that creates a session, or why it cannot be.
func New(c Create) (Event, error) {
	switch {
	case !c.ID.Valid():
		return nil, Errorf(Invalid, "session id %q: use 1 to %d letters, digits, - and _", c.ID, maxID)
	case !filepath.IsAbs(c.Cwd) && (!c.Remote || c.Cwd == "") || len(c.Cwd) > MaxCwd || !utf8.ValidString(c.Cwd) || strings.ContainsRune(c.Cwd, 0):
		return nil, Errorf(Invalid, "cwd must be an absolute path of at most %d bytes", MaxCwd)
	case c.Model.IsZero():
		return nil, Errorf(Invalid, "no model: name one, or set default_model in the configuration")
	case !c.Thinking.Valid():
		return nil, Errorf(Invalid, "unknown thinking level %q", c.Thinking)
	}
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	return Created{
		ID: c.ID, Cwd: c.Cwd, Name: c.Name, Model: c.Model, Thinking: c.Thinking, Parent: c.Parent, Origin: c.Origin,
	}, nil
}

func checkName(name string) error {
	if len(name) > MaxName || !utf8.ValidString(name) {
		return Errorf(Invalid, "a name is at most %d bytes of UTF-8", MaxName)
	}
	return nil
}

func checkText(id, text string) error {
	switch {
	case len(text) > MaxPrompt:
		return Errorf(TooLarge, "the text has %d bytes and the limit is %d: put it into a file of the working directory and name the file", len(text), MaxPrompt)
	case !utf8.ValidString(text):
		return Errorf(Invalid, "the text is not valid UTF-8")
	case len(id) > MaxPromptID || !utf8.ValidString(id):
		return Errorf(Invalid, "a prompt id is at most %d bytes of UTF-8", MaxPromptID)
	}
	return nil
}

// Decide returns the events that cmd causes, or an *Error that says why it cannot be obeyed.
// No events and no error means that cmd asks for what is so already.
func (s *State) Decide(cmd Command) ([]Event, error) {
	switch c := cmd.(type) {
	case Prompt:
		return s.decidePrompt(c)
	case Steer:
		return s.decideSteer(c)
	case Abort:
		switch {
		case s.Run == nil:
			return nil, Errorf(Busy, "There is no active prompt to abort")
		case s.Run.Aborting:
			return nil, nil
		}
		return []Event{AbortRequested{}}, nil
	case SetModel:
		if err := s.mustBeIdle(); err != nil {
			return nil, err
		}
		thinking := Clamp(s.Thinking, c.Levels)
		if c.Model == s.Model && thinking == s.Thinking {
			return nil, nil
		}
		return []Event{ModelSet{Model: c.Model, Thinking: thinking}}, nil
	case SetThinking:
		if err := s.mustBeIdle(); err != nil {
			return nil, err
		}
		if !slices.Contains(c.Levels, c.Thinking) {
			return nil, Errorf(Invalid, "%s has no thinking level %q; it has %v", s.Model, c.Thinking, c.Levels)
		}
		if c.Thinking == s.Thinking {
			return nil, nil
		}
		return []Event{ThinkingSet{Thinking: c.Thinking}}, nil
	case Rename:
		if err := checkName(c.Name); err != nil {
			return nil, err
		}
		return []Event{Renamed(c)}, nil
	case Answer:
		return s.decideAnswer(c)
	case Report:
		return s.decideReport(c)
	case Resume:
		if s.Run != nil || !s.Unanswered() {
			return nil, nil
		}
		if err := s.checkKeep(c.Keep); err != nil {
			return nil, err
		}
		return append(kept(c.Keep), RunStarted{Run: s.LastRun + 1, Offer: c.Offer, Resume: true}), nil
	case SetMode, Rewind, Compact, Replace, Tell:
		return s.decideIdle(c)
	}
	return nil, Errorf(Internal, "unknown command %T", cmd)
}

// decideAnswer takes the first answer to a query; a later one is told so.
func (s *State) decideAnswer(c Answer) ([]Event, error) {
	t := s.Tool(c.Call)
	if t == nil || t.Query == nil {
		return nil, Errorf(NotFound, "there is no open question about %s; it may have been answered already", c.Call)
	}
	if len(c.Reason) > MaxPrompt || !utf8.ValidString(c.Reason) {
		return nil, Errorf(Invalid, "the reason must be UTF-8 of at most %d bytes", MaxPrompt)
	}
	answered := QueryAnswered{Call: c.Call, Allow: c.Allow, Reason: c.Reason}
	if c.Allow {
		if c.Scope != Once {
			answered.Grants = t.Query.Grants
		}
		return []Event{answered}, nil
	}
	why := "The person did not allow it."
	if c.Reason != "" {
		why += " " + c.Reason
	}
	return []Event{answered, ToolEnded{Call: c.Call, IsError: true, Output: why}}, nil
}

// decideIdle decides commands that only an idle session obeys.
func (s *State) decideIdle(cmd Command) ([]Event, error) {
	if err := s.mustBeIdle(); err != nil {
		return nil, err
	}
	switch c := cmd.(type) {
	case SetMode:
		switch {
		case !c.Mode.Valid():
			return nil, Errorf(Invalid, "unknown mode %q; the modes are agent, ask, plan and debug", c.Mode)
		case c.Mode == s.Mode:
			return nil, nil
		}
		return []Event{ModeSet{Mode: c.Mode}, NoteAdded{Item: userItemID(s.Users + 1), Note: NoteMode, Text: c.Text}}, nil
	case Rewind:
		for i, item := range s.Settled {
			if u, ok := item.(*User); ok && u.ID == c.Item && u.Note == NoteNone {
				return []Event{Rewound{Items: i}}, nil
			}
		}
		return nil, Errorf(NotFound, "there is no message %q of the person to go back to", c.Item)
	case Replace:
		return s.decideReplace(c)
	case Tell:
		if err := checkText("", c.Text); err != nil {
			return nil, err
		}
		return []Event{NoteAdded{Item: userItemID(s.Users + 1), Note: NoteClient, Text: c.Text}}, nil
	case Compact:
		if c.Through <= s.Summarized || c.Through > len(s.Settled) {
			return nil, Errorf(Invalid, "there is nothing to compact")
		}
		return []Event{RunStarted{Run: s.LastRun + 1}, CompactionStarted(c)}, nil
	}
	return nil, Errorf(Internal, "unknown command %T", cmd)
}

// decideReport takes what is new in a client's report.
func (s *State) decideReport(c Report) ([]Event, error) {
	if err := s.checkKeep(c.Keep); err != nil {
		return nil, err
	}
	events := kept(c.Keep)
	over := make(map[CallID]bool)
	pending := func(call CallID) bool {
		t := s.Tool(call)
		return t != nil && t.Host == HostClient && t.Status == Streaming && !over[call]
	}
	for _, call := range c.Issued {
		if pending(call) && !slices.Contains(s.Run.Issued, call) {
			events = append(events, ToolIssued{Call: call})
		}
	}
	for _, o := range c.Output {
		if pending(o.Call) {
			events = append(events, o)
		}
	}
	if c.Mode != "" {
		switch {
		case !c.Mode.Valid():
			return nil, Errorf(Invalid, "unknown mode %q", c.Mode)
		case s.Run != nil:
			events = append(events, ModeSet{Mode: c.Mode, Offer: c.Offer})
		}
	}
	for _, e := range c.Ended {
		if pending(e.Call) {
			over[e.Call] = true
			events = append(events, e)
		}
	}
	return events, nil
}

func (s *State) decideReplace(c Replace) ([]Event, error) {
	if c.Keep < 0 || c.Keep > len(s.Settled) {
		return nil, Errorf(Invalid, "the transcript has %d items, of which %d cannot be kept", len(s.Settled), c.Keep)
	}
	var events []Event
	if c.Keep < len(s.Settled) {
		if _, ok := s.Settled[c.Keep].(*User); !ok {
			return nil, Errorf(Invalid, "a transcript can only be cut before a message")
		}
		events = append(events, Rewound{Items: c.Keep})
	}
	for _, items := range c.Copies {
		events = append(events, items)
	}
	return events, nil
}

func (s *State) checkKeep(sets []FrontSet) error {
	if len(s.Front)+len(sets) > MaxFront {
		return Errorf(TooLarge, "a session remembers at most %d things for front ends", MaxFront)
	}
	for _, set := range sets {
		if len(set.Key) > MaxFrontKey || len(set.Value) > MaxFrontSet {
			return Errorf(TooLarge, "what a front end has a session remember is at most %d bytes", MaxFrontSet)
		}
	}
	return nil
}

func kept(sets []FrontSet) []Event {
	var events []Event
	for _, s := range sets {
		events = append(events, s)
	}
	return events
}

func (s *State) mustBeIdle() error {
	if s.Run != nil {
		return Errorf(Busy, "The session is busy; wait until it is idle, or abort")
	}
	return nil
}

func (s *State) decidePrompt(c Prompt) ([]Event, error) {
	blocks, text := c.Blocks, ""
	if len(blocks) == 0 {
		blocks = []Block{Text{Text: c.Text}}
	}
	for _, b := range blocks {
		text += BlockText(b)
	}
	if err := checkText(c.ID, text); err != nil {
		return nil, err
	}
	if err := s.checkKeep(c.Keep); err != nil {
		return nil, err
	}
	if s.FindPrompt(c.ID) != nil {
		return nil, nil
	}
	if s.Run != nil {
		return nil, Errorf(Busy, "The session is busy with another prompt; steer it, abort it, or wait until it is idle")
	}
	events := kept(c.Keep)
	users := s.Users
	note := func(n NoteAdded) {
		users++
		n.Item = userItemID(users)
		events = append(events, n)
	}
	if c.Context.Hash != "" && c.Context.Hash != s.Context {
		note(NoteAdded{Note: NoteContext, Text: c.Context.Text, Context: c.Context.Hash})
	}
	if c.Added != "" {
		note(NoteAdded{Note: NoteHook, Text: c.Added})
	}
	return append(events, RunStarted{
		Run: s.LastRun + 1, Item: userItemID(users + 1), Prompt: c.ID, Blocks: blocks, Offer: c.Offer,
	}), nil
}

func (s *State) decideSteer(c Steer) ([]Event, error) {
	if err := checkText(c.ID, c.Text); err != nil {
		return nil, err
	}
	if s.FindPrompt(c.ID) != nil {
		return nil, nil
	}
	switch {
	case s.Run == nil:
		return nil, Errorf(Busy, "There is no active prompt to steer")
	case s.Run.Aborting:
		return nil, Errorf(Busy, "The prompt is being aborted")
	case len(s.Queue) >= MaxQueue:
		return nil, Errorf(Busy, "%d steers are waiting already", MaxQueue)
	}
	return []Event{SteerQueued{Item: userItemID(s.Users + 1), Prompt: c.ID, Blocks: []Block{Text{Text: c.Text}}}}, nil
}

// Clamp returns t if levels has it, else the nearest lower level that levels has, else its
// lowest. Without levels it returns ThinkingOff.
func Clamp(t Thinking, levels []Thinking) Thinking {
	if len(levels) == 0 {
		return ThinkingOff
	}
	best := levels[0]
	for _, l := range levels {
		if slices.Index(ThinkingLevels, l) <= slices.Index(ThinkingLevels, t) {
			best = l
		}
	}
	return best
}

// Receipt says where a command took effect.
type Receipt struct {
	Seq  Seq    // the session's last event when the command had been obeyed
	Run  RunID  // the run that the command began or belongs to; 0 when there is none
	Item ItemID // the user item of a prompt or steer; empty for other commands

	Dropped []*User // the steers that an abort took out of the queue, to be given back to the person
}
