package piwire

func (e *encoder) clientMessage(m ClientMessage) {
	switch m := m.(type) {
	case *Hello:
		e.object(2)
		e.text("type", "hello")
		e.count("version", m.Version, 0)
	case *Request:
		e.object(3)
		e.text("type", "request")
		e.full("id", m.ID)
		e.key("request")
		e.command(m.Command)
	default:
		e.invalid = true
	}
}

func (e *encoder) command(c Command) {
	switch c := c.(type) {
	case *List:
		e.commandHead(c, 0)
	case *Create:
		e.create(c)
	case *Attach:
		e.sessionCommand(c, c.SessionID, 0)
	case *Detach:
		e.sessionCommand(c, c.SessionID, 0)
	case *Prompt:
		e.sessionCommand(c, c.SessionID, 1)
		e.text("text", c.Text)
	case *Steer:
		e.sessionCommand(c, c.SessionID, 1)
		e.text("text", c.Text)
	case *Abort:
		e.sessionCommand(c, c.SessionID, 0)
	case *SetModel:
		e.sessionCommand(c, c.SessionID, 1)
		e.modelRef(&c.Model)
	case *SetThinking:
		e.sessionCommand(c, c.SessionID, 1)
		choice(e, "thinkingLevel", thinkingLevels, c.ThinkingLevel)
	default:
		e.invalid = true
	}
}

func (e *encoder) commandHead(c Command, fields int) {
	e.object(1 + fields)
	e.text("command", string(c.CommandName()))
}

func (e *encoder) sessionCommand(c Command, sessionID string, fields int) {
	e.commandHead(c, 1+fields)
	e.full("sessionId", sessionID)
}

func (e *encoder) create(c *Create) {
	e.commandHead(c, present(c.Cwd != "", c.Name != nil, c.Model != nil, c.ThinkingLevel != ""))
	e.optional("cwd", c.Cwd)
	e.optionalText("name", c.Name)
	if c.Model != nil {
		e.modelRef(c.Model)
	}
	if c.ThinkingLevel != "" {
		choice(e, "thinkingLevel", thinkingLevels, c.ThinkingLevel)
	}
}

func (e *encoder) modelRef(m *ModelRef) {
	e.key("model")
	e.object(2)
	e.full("provider", m.Provider)
	e.full("id", m.ID)
}
