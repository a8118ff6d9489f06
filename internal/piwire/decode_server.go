package piwire

var (
	serverHelloFields    = closed("type", "version", "connectionId", "snapshot")
	helloErrorFields     = closed("type", "error")
	responseFields       = closed("type", "id", "ok", "?result", "?error")
	errorFields          = closed("code", "message", "?details")
	listResultFields     = closed("command", "sessions")
	detachResultFields   = closed("command", "sessionId")
	sessionResultFields  = closed("command", "session")
	eventFields          = closed("type", "event")
	snapshotEventFields  = closed("type", "snapshot")
	removedEventFields   = closed("type", "sessionId")
	progressEventFields  = closed("type", "sessionId", "progress")
	itemProgressFields   = closed("type", "item")
	assistantDeltaFields = closed("type", "messageId", "contentIndex", "kind", "delta")
)

func (d *decoder) serverMessage() ServerMessage {
	switch string(d.peek("type")) {
	case "hello":
		return d.serverHello()
	case "hello_error":
		return &HelloError{only(d, helloErrorFields, (*decoder).protocolError)}
	case "response":
		return d.response()
	case "event":
		return only(d, eventFields, (*decoder).event)
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) serverHello() *ServerHello {
	m := &ServerHello{}
	for o := d.open(serverHelloFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "version":
			d.version()
		case "connectionId":
			m.ConnectionID = d.full()
		case "snapshot":
			m.Snapshot = d.serverSnapshot()
		}
	}
	return m
}

func (d *decoder) response() *Response {
	m := &Response{}
	var ok bool
	o := d.open(responseFields)
	for o.next() {
		switch o.key {
		case "type":
			d.known()
		case "id":
			m.ID = d.full()
		case "ok":
			ok = d.boolean()
		case "result":
			m.Result = d.result()
		case "error":
			e := d.protocolError()
			m.Error = &e
		}
	}
	d.bad = d.bad || ok != o.has("result") || ok == o.has("error")
	return m
}

func (d *decoder) protocolError() (e ProtocolError) {
	for o := d.open(errorFields); o.next(); {
		switch o.key {
		case "code":
			e.Code = word(d, errorCodes)
		case "message":
			e.Message = d.text()
		case "details":
			e.Details = d.value()
		}
	}
	return e
}

func (d *decoder) result() Result {
	command := CommandName(d.peek("command"))
	switch {
	case command == CommandList:
		return &ListResult{only(d, listResultFields, (*decoder).sessions)}
	case command == CommandDetach:
		return &DetachResult{only(d, detachResultFields, (*decoder).full)}
	case oneOf(snapshotCommands, command):
		return d.sessionResult()
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) sessionResult() *SessionResult {
	r := &SessionResult{}
	for o := d.open(sessionResultFields); o.next(); {
		switch o.key {
		case "command":
			r.Command = word(d, snapshotCommands)
		case "session":
			r.Session = d.sessionSnapshot()
		}
	}
	return r
}

func (d *decoder) event() Event {
	switch string(d.peek("type")) {
	case "server_snapshot":
		return &ServerSnapshotEvent{only(d, snapshotEventFields, (*decoder).serverSnapshot)}
	case "session_snapshot":
		return &SessionSnapshotEvent{only(d, snapshotEventFields, (*decoder).sessionSnapshot)}
	case "session_progress":
		return d.progressEvent()
	case "session_removed":
		return &SessionRemovedEvent{only(d, removedEventFields, (*decoder).full)}
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) progressEvent() *SessionProgressEvent {
	ev := &SessionProgressEvent{}
	for o := d.open(progressEventFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "sessionId":
			ev.SessionID = d.full()
		case "progress":
			ev.Progress = d.progress()
		}
	}
	return ev
}

func (d *decoder) progress() Progress {
	switch string(d.peek("type")) {
	case "item_started":
		return &ItemStarted{only(d, itemProgressFields, (*decoder).item)}
	case "assistant_delta":
		return d.assistantDelta()
	case "item_updated":
		it := only(d, itemProgressFields, (*decoder).item)
		d.bad = d.bad || isUser(it)
		return &ItemUpdated{it}
	case "item_finished":
		it := only(d, itemProgressFields, (*decoder).item)
		d.bad = d.bad || !hasEnded(it)
		return &ItemFinished{it}
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) assistantDelta() *AssistantDelta {
	p := &AssistantDelta{}
	for o := d.open(assistantDeltaFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "messageId":
			p.MessageID = d.full()
		case "contentIndex":
			p.ContentIndex = d.count(0)
		case "kind":
			p.Kind = word(d, deltaKinds)
		case "delta":
			p.Delta = d.text()
		}
	}
	return p
}
