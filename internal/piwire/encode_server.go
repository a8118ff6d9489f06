package piwire

// The depths at which values stand in messages; the root map is at 0.
const (
	depthErrorDetails   = 2 // root, error, details
	depthTranscriptItem = 4 // root, result or event, session or snapshot, transcript, item
	depthProgressItem   = 3 // root, event, progress, item
)

func (e *encoder) serverMessage(m ServerMessage) {
	switch m := m.(type) {
	case *ServerHello:
		e.object(4)
		e.text("type", "hello")
		e.count("version", ProtocolVersion, 1)
		e.full("connectionId", m.ConnectionID)
		e.serverSnapshot(m.Snapshot)
	case *HelloError:
		e.object(2)
		e.text("type", "hello_error")
		e.protocolError(&m.Error)
	case *Response:
		e.response(m)
	case Event:
		e.object(2)
		e.text("type", "event")
		e.key("event")
		e.event(m)
	default:
		e.invalid = true
	}
}

func (e *encoder) response(m *Response) {
	e.require((m.Error == nil) != (m.Result == nil))
	e.object(4)
	e.text("type", "response")
	e.full("id", m.ID)
	e.boolean("ok", m.Error == nil)
	if m.Error != nil {
		e.protocolError(m.Error)
	} else {
		e.result(m.Result)
	}
}

func (e *encoder) protocolError(p *ProtocolError) {
	e.key("error")
	e.object(2 + present(!p.Details.IsZero()))
	choice(e, "code", errorCodes, p.Code)
	e.text("message", p.Message)
	if !p.Details.IsZero() {
		e.value("details", p.Details, depthErrorDetails)
	}
}

func (e *encoder) result(r Result) {
	e.key("result")
	e.object(2)
	switch r := r.(type) {
	case *ListResult:
		e.text("command", string(CommandList))
		e.sessions(r.Sessions)
	case *DetachResult:
		e.text("command", string(CommandDetach))
		e.full("sessionId", r.SessionID)
	case *SessionResult:
		choice(e, "command", snapshotCommands, r.Command)
		e.sessionSnapshot("session", r.Session)
	default:
		e.invalid = true
	}
}

func (e *encoder) event(ev Event) {
	switch ev := ev.(type) {
	case *ServerSnapshotEvent:
		e.object(2)
		e.text("type", "server_snapshot")
		e.serverSnapshot(ev.Snapshot)
	case *SessionSnapshotEvent:
		e.object(2)
		e.text("type", "session_snapshot")
		e.sessionSnapshot("snapshot", ev.Snapshot)
	case *SessionProgressEvent:
		e.object(3)
		e.text("type", "session_progress")
		e.full("sessionId", ev.SessionID)
		e.key("progress")
		e.progress(ev.Progress)
	case *SessionRemovedEvent:
		e.object(2)
		e.text("type", "session_removed")
		e.full("sessionId", ev.SessionID)
	default:
		e.invalid = true
	}
}

func (e *encoder) progress(p Progress) {
	switch p := p.(type) {
	case *ItemStarted:
		e.itemProgress("item_started", p.Item)
	case *AssistantDelta:
		e.object(5)
		e.text("type", "assistant_delta")
		e.full("messageId", p.MessageID)
		e.count("contentIndex", p.ContentIndex, 0)
		choice(e, "kind", deltaKinds, p.Kind)
		e.text("delta", p.Delta)
	case *ItemUpdated:
		e.require(!isUser(p.Item))
		e.itemProgress("item_updated", p.Item)
	case *ItemFinished:
		e.require(hasEnded(p.Item))
		e.itemProgress("item_finished", p.Item)
	default:
		e.invalid = true
	}
}

func (e *encoder) itemProgress(kind string, it Item) {
	e.object(2)
	e.text("type", kind)
	e.key("item")
	e.item(it, depthProgressItem)
}
