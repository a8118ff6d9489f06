package cursor

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/scripted"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// scene is a server in simulated time, whose model follows a script.
type scene struct {
	t      *testing.T
	server *Server
	engine *actor.Engine
	model  *scripted.Model
}

var sceneModel = catalog.Model{
	Ref: session.ModelRef{Provider: "test", ID: "m"}, ContextWindow: 100_000, MaxOutput: 1000,
	ThinkingLevels: []session.Thinking{session.ThinkingOff},
}

func (s *scene) Find(session.ModelRef) (provider.Model, catalog.Model, error) {
	return s.model, sceneModel, nil
}

// play runs f in simulated time.
func play(t *testing.T, script string, f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		model, err := scripted.Parse([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{t: t, model: model}
		blobs := &blob.Memory{}
		first := func() session.ModelRef { return sceneModel.Ref }
		s.engine = actor.New(actor.Config{
			Log: memlog.New(), Models: s, Blobs: blobs, NewID: func() session.ID { return "new" }, Dir: t.TempDir(), DefaultModel: first,
		})
		s.server = New(Options{
			Engine: s.engine, Models: func() []catalog.Model { return []catalog.Model{sceneModel} }, Default: first, Blobs: blobs,
		})
		f(s)
		s.server.Close()
		if err := s.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// tie is a link that a test holds the other end of. It answers blobs by itself.
type tie struct {
	in        chan received
	connected chan struct{}
	gone      chan struct{}
	once      sync.Once
	mute      bool // blobs are not answered
	lazy      bool // nothing is written before the end

	room chan struct{}

	mu    sync.Mutex
	full  bool // the client takes nothing for now
	sent  []*agentv1.AgentServerMessage
	mark  uint64 // the greatest that was sent
	ended bool
	end   *cursorwire.Error
}

func (s *scene) connect() *tie { return s.connectAs(&tie{}) }

func (s *scene) connectAs(l *tie) *tie {
	l.in, l.connected, l.gone = make(chan received, 64), make(chan struct{}), make(chan struct{})
	l.room = make(chan struct{}, 1)
	close(l.connected)
	s.server.hub.work.Go(func() { s.server.drive(s.server.hub.ctx, l) })
	return l
}

func (l *tie) RequestID() string                          { return "r" }
func (l *tie) Headers() cursorwire.Headers                { return cursorwire.Headers{} }
func (l *tie) Received() <-chan received                  { return l.in }
func (l *tie) Connected() <-chan struct{}                 { return l.connected }
func (l *tie) Gone() <-chan struct{}                      { return l.gone }
func (l *tie) SetJournal(func(seq int64, d []byte) error) {}

func (l *tie) Room() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return l.room
	}
	return nil
}

// fill has the client take nothing, or all of it again.
func (l *tie) fill(full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full = full; !full {
		l.room <- struct{}{}
	}
}

func (l *tie) Written() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lazy && !l.ended {
		return 0
	}
	return l.mark
}

func (l *tie) Send(m *agentv1.AgentServerMessage, mark uint64) {
	l.mu.Lock()
	l.sent, l.mark = append(l.sent, m), max(l.mark, mark)
	l.mu.Unlock()
	if kv := m.GetKvServerMessage(); kv.GetSetBlobArgs() != nil && !l.mute {
		l.say(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_KvClientMessage{KvClientMessage: &agentv1.KvClientMessage{
			Id: kv.Id, Message: &agentv1.KvClientMessage_SetBlobResult{SetBlobResult: &agentv1.SetBlobResult{}},
		}}})
	}
}

func (l *tie) End(err *cursorwire.Error) {
	l.mu.Lock()
	l.ended, l.end = true, err
	l.mu.Unlock()
	l.once.Do(func() { close(l.gone) })
}

func (l *tie) say(m *agentv1.AgentClientMessage) {
	l.in <- received{Message: m, Done: func(error) {}}
}

// messages returns what was sent so far, once nothing moves any more.
func (l *tie) messages() []*agentv1.AgentServerMessage {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// text is what the model has said, and whether the turn has ended.
func (l *tie) text() (said string, ended bool) {
	for _, m := range l.messages() {
		said += m.GetInteractionUpdate().GetTextDelta().GetText()
		ended = ended || m.GetInteractionUpdate().GetTurnEnded() != nil
	}
	return said, ended
}

// exec returns the newest request of a kind.
func (l *tie) exec(f func(*agentv1.ExecServerMessage) bool) *agentv1.ExecServerMessage {
	var found *agentv1.ExecServerMessage
	for _, m := range l.messages() {
		if e := m.GetExecServerMessage(); e != nil && f(e) {
			found = e
		}
	}
	return found
}

func userMessage(text string) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{UserMessageAction: &agentv1.UserMessageAction{
		UserMessage:    &agentv1.UserMessage{Text: text, MessageId: "m-" + text},
		RequestContext: &agentv1.RequestContext{Env: &agentv1.RequestContextEnv{WorkspacePaths: []string{"/w"}}},
	}}}
}

func start(action *agentv1.ConversationAction) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: &agentv1.AgentRunRequest{
		ConversationId: new("c"), Action: action,
	}}}
}

const readThenSay = "rules: [{default: true, passes: [[{tool: {name: Read, input: {path: f}}}], [{text: '${tool1}'}]]}]"

// A client that loses a request does not hold up the turn for ever (R15, W27); one that is at work does.
func TestSilentClient(t *testing.T) {
	play(t, readThenSay, func(s *scene) {
		l := s.connect()
		l.say(start(userMessage("go")))
		read := l.exec(func(m *agentv1.ExecServerMessage) bool { return m.GetReadArgs() != nil })
		if read == nil {
			s.t.Fatal("nothing was asked of the client")
		}
		for range 10 { // the client is slow
			time.Sleep(30 * time.Second) // of the bubble's clock
			l.say(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{
				ExecClientControlMessage: &agentv1.ExecClientControlMessage{
					Message: &agentv1.ExecClientControlMessage_Heartbeat{Heartbeat: &agentv1.ExecClientHeartbeat{Id: read.Id}},
				},
			}})
		}
		if said, ended := l.text(); said != "" || ended {
			s.t.Errorf("a request that the client is at work on was given up: %q", said)
		}
		time.Sleep(62 * time.Second)
		said, ended := l.text()
		if !strings.Contains(said, "has not been heard of") || !ended {
			s.t.Errorf("the model says %q, ended %v", said, ended)
		}
		time.Sleep(lastWrites)
	})
}

// A client that has nothing to say about its surroundings, and loses a request by closing it, gets its
// turn all the same.
func TestClosedRequest(t *testing.T) {
	play(t, readThenSay, func(s *scene) {
		l := s.connect()
		action := userMessage("go")
		action.GetUserMessageAction().RequestContext = nil
		l.say(start(action))
		time.Sleep(contextWait + time.Second)
		read := l.exec(func(m *agentv1.ExecServerMessage) bool { return m.GetReadArgs() != nil })
		if read == nil {
			s.t.Fatal("nothing was asked of the client")
		}
		l.say(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{
			ExecClientControlMessage: &agentv1.ExecClientControlMessage{
				Message: &agentv1.ExecClientControlMessage_StreamClose{StreamClose: &agentv1.ExecClientStreamClose{Id: read.Id}},
			},
		}})
		time.Sleep(closeGrace + time.Second)
		if said, ended := l.text(); !strings.Contains(said, "without a result") || !ended {
			s.t.Errorf("the model says %q, ended %v", said, ended)
		}
		time.Sleep(lastWrites)
	})
}

// A prewarm begins no turn; the message that follows on its stream does (section 3.8, W16).
func TestPrewarm(t *testing.T) {
	play(t, "rules: [{default: true, passes: [[{text: fine}]]}]", func(s *scene) {
		l := s.connect()
		l.say(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_PrewarmRequest{PrewarmRequest: &agentv1.PrewarmRequest{
			ConversationId: new("c"),
		}}})
		time.Sleep(10 * time.Minute)
		if said, ended := l.text(); said != "" || ended {
			s.t.Fatalf("a prewarm says %q, ended %v", said, ended)
		}
		l.say(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ConversationAction{ConversationAction: userMessage("go")}})
		if said, ended := l.text(); said != "fine" || !ended {
			s.t.Errorf("says %q, ended %v", said, ended)
		}
		state, err := s.engine.State(context.Background(), "c")
		if err != nil || state.LastRun != 1 {
			s.t.Errorf("run %d, %v", state.LastRun, err)
		}
		time.Sleep(lastWrites)
	})
}

// While the last checkpoint of a turn is under way, somebody else begins another run. It is no part of
// the turn, which ends as if there were none (section 4.2).
func TestRunAfterTheEnd(t *testing.T) {
	play(t, "rules: [{default: true, passes: [[{think: hm}, {text: fine}]]}]", func(s *scene) {
		l := s.connectAs(&tie{mute: true})
		l.say(start(userMessage("go")))
		if said, ended := l.text(); said != "fine" || ended {
			s.t.Fatalf("says %q, ended %v before the checkpoint was answered", said, ended)
		}
		if _, err := s.engine.Do(context.Background(), "c", session.Prompt{ID: "other", Text: "go on"}); err != nil {
			s.t.Fatal(err)
		}
		if state, err := s.engine.State(context.Background(), "c"); err != nil || state.LastRun != 2 {
			s.t.Fatalf("run %d, %v", state.LastRun, err)
		}
		time.Sleep(lastCheckpoint)
		if said, ended := l.text(); said != "fine" || !ended {
			s.t.Errorf("says %q, ended %v", said, ended)
		}
		time.Sleep(lastWrites)
	})
}

// A message that had joined the run of another protocol is lost with it. A client that resumes, after a
// lost connection, is told, whether the run was aborted while it was away or later.
func TestResumeOfALostMessage(t *testing.T) {
	for name, away := range map[string]bool{"away": true, "there": false} {
		t.Run(name, func(t *testing.T) {
			play(t, "rules: [{default: true, passes: [[{hang: true}]]}]", func(s *scene) {
				resume := start(&agentv1.ConversationAction{Action: &agentv1.ConversationAction_ResumeAction{ResumeAction: &agentv1.ResumeAction{}}})
				message := start(userMessage("mine"))
				for _, m := range []*agentv1.AgentClientMessage{message, resume} {
					m.GetRunRequest().RunId = new("run")
				}
				do := func(c session.Command) {
					if _, err := s.engine.Do(context.Background(), "c", c); err != nil {
						s.t.Fatal(err)
					}
				}
				if _, err := s.engine.Create(context.Background(), session.Create{ID: "c", Cwd: "/w", Remote: true}); err != nil {
					s.t.Fatal(err)
				}
				do(session.Prompt{ID: "theirs", Text: "theirs"})
				first := s.connect()
				first.say(message)
				synctest.Wait()
				first.once.Do(func() { close(first.gone) })
				synctest.Wait()
				if away {
					do(session.Abort{})
				}
				second := s.connect()
				second.say(resume)
				synctest.Wait()
				if !away {
					do(session.Abort{})
				}
				if _, ended := second.text(); ended || second.end == nil || second.end.Error() != errNotDelivered.Error() {
					s.t.Errorf("ended %v, with %v", ended, second.end)
				}
				time.Sleep(lastWrites)
			})
		})
	}
}

// A client that does not read for a while has nothing queued for it meanwhile but a little: what happens
// waits in the event log. When it reads again it gets all of it.
func TestReaderThatRests(t *testing.T) {
	const words = 200_000
	play(t, "rules: [{default: true, passes: [[{text: first, every: 1s}, {text: ' word', repeat: 200000}]]}]", func(s *scene) {
		l := s.connect()
		l.say(start(userMessage("go")))
		l.messages()
		l.fill(true)
		for range 100 {
			if state, err := s.engine.State(context.Background(), "c"); err == nil && state.Run == nil {
				break
			}
			time.Sleep(time.Second)
		}
		if said, ended := l.text(); ended || len(said) > maxBacklog {
			s.t.Errorf("%d bytes were queued for a client that reads nothing, ended %v", len(said), ended)
		}
		l.fill(false)
		time.Sleep(lastCheckpoint)
		if said, ended := l.text(); said != "first"+strings.Repeat(" word", words) || !ended {
			s.t.Errorf("%d bytes, ended %v", len(said), ended)
		}
		time.Sleep(lastWrites)
	})
}

// What is queued for a client has a size; beyond it there is no room until it was taken.
func TestRoom(t *testing.T) {
	w := newWire("r")
	text := strings.Repeat("x", 1000)
	m := &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: text}},
	}}}
	n := 0
	for ; w.Room() == nil; n++ {
		w.Send(m, 0)
	}
	if size := n * len(text); size > maxBacklog || size < maxBacklog/2 {
		t.Errorf("%d bytes were queued", size)
	}
	room := w.Room()
	b, _ := w.out.take()
	select {
	case <-room:
	default:
		t.Error("no sign that there is room again")
	}
	if w.Room() != nil || len(b.messages) == 0 {
		t.Errorf("no room after %d of %d messages were taken", len(b.messages), n)
	}
}

// A server closes while much waits to be written to a client. It is written with the end, so the client
// that comes back has been told it.
func TestWrittenAtTheEndIsTold(t *testing.T) {
	play(t, "rules: [{default: true, passes: [[{text: 'one two three'}, {hang: true}]]}]", func(s *scene) {
		l := s.connectAs(&tie{lazy: true})
		l.say(start(userMessage("go")))
		if said, _ := l.text(); said != "one two three" {
			s.t.Fatalf("said %q", said)
		}
		s.server.Close()
		state, err := s.engine.State(context.Background(), "c")
		if err != nil {
			s.t.Fatal(err)
		}
		if mark := readMark[sentMark](state, keySent); mark.Open || l.mark == 0 || mark.Seq != session.Seq(l.mark) {
			s.t.Errorf("the client has been told as far as %d, and the session remembers %+v", l.mark, mark)
		}
	})
}
