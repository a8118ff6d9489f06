package piwire

var (
	helloFields       = closed("type", "version")
	requestFields     = closed("type", "id", "request")
	listFields        = closed("command")
	createFields      = closed("command", "?cwd", "?name", "?model", "?thinkingLevel")
	sessionFields     = closed("command", "sessionId")
	messageFields     = closed("command", "sessionId", "text")
	setModelFields    = closed("command", "sessionId", "model")
	setThinkingFields = closed("command", "sessionId", "thinkingLevel")
	modelRefFields    = closed("provider", "id")
)

func (d *decoder) clientMessage() ClientMessage {
	switch string(d.peek("type")) {
	case "hello":
		return d.hello()
	case "request":
		return d.request()
	default:
		d.bad = true
		return nil
	}
}

func (d *decoder) hello() *Hello {
	m := &Hello{}
	for o := d.open(helloFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "version":
			m.Version = d.count(0)
		}
	}
	return m
}

func (d *decoder) request() *Request {
	m := &Request{}
	for o := d.open(requestFields); o.next(); {
		switch o.key {
		case "type":
			d.known()
		case "id":
			m.ID = d.full()
		case "request":
			m.Command = d.command()
		}
	}
	return m
}

func (d *decoder) command() Command {
	switch CommandName(d.peek("command")) {
	case CommandList:
		for o := d.open(listFields); o.next(); {
			d.known()
		}
		return &List{}
	case CommandCreate:
		return d.create()
	case CommandAttach:
		return &Attach{only(d, sessionFields, (*decoder).full)}
	case CommandDetach:
		return &Detach{only(d, sessionFields, (*decoder).full)}
	case CommandAbort:
		return &Abort{only(d, sessionFields, (*decoder).full)}
	case CommandPrompt:
		c := d.sessionCommand(messageFields)
		return &Prompt{c.sessionID, c.text}
	case CommandSteer:
		c := d.sessionCommand(messageFields)
		return &Steer{c.sessionID, c.text}
	case CommandSetModel:
		c := d.sessionCommand(setModelFields)
		return &SetModel{c.sessionID, c.model}
	case CommandSetThinking:
		c := d.sessionCommand(setThinkingFields)
		return &SetThinking{c.sessionID, c.thinkingLevel}
	default:
		d.bad = true
		return nil
	}
}

// sessionCommand is a command about one session with one more field; the fields
// that were opened decide which.
type sessionCommand struct {
	sessionID     string
	text          string
	model         ModelRef
	thinkingLevel ThinkingLevel
}

func (d *decoder) sessionCommand(f *fields) (c sessionCommand) {
	for o := d.open(f); o.next(); {
		switch o.key {
		case "command":
			d.known()
		case "sessionId":
			c.sessionID = d.full()
		case "text":
			c.text = d.text()
		case "model":
			c.model = d.modelRef()
		case "thinkingLevel":
			c.thinkingLevel = word(d, thinkingLevels)
		}
	}
	return c
}

func (d *decoder) create() *Create {
	c := &Create{}
	for o := d.open(createFields); o.next(); {
		switch o.key {
		case "command":
			d.known()
		case "cwd":
			c.Cwd = d.full()
		case "name":
			c.Name = d.optionalText()
		case "model":
			m := d.modelRef()
			c.Model = &m
		case "thinkingLevel":
			c.ThinkingLevel = word(d, thinkingLevels)
		}
	}
	return c
}

func (d *decoder) modelRef() (m ModelRef) {
	for o := d.open(modelRefFields); o.next(); {
		switch o.key {
		case "provider":
			m.Provider = d.full()
		case "id":
			m.ID = d.full()
		}
	}
	return m
}
