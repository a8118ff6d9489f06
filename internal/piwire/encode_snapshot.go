package piwire

func (e *encoder) serverSnapshot(s *ServerSnapshot) {
	e.key("snapshot")
	if s == nil {
		e.invalid = true
		return
	}
	e.object(5)
	e.full("serverId", s.ServerID)
	e.count("protocolVersion", ProtocolVersion, 1)
	e.count("revision", s.Revision, 0)
	e.sessions(s.Sessions)
	e.key("models")
	e.array(len(s.Models))
	for i := range s.Models {
		e.model(&s.Models[i])
	}
}

func (e *encoder) sessions(list []SessionMetadata) {
	e.key("sessions")
	e.array(len(list))
	for i := range list {
		e.metadata(&list[i])
	}
}

func (e *encoder) metadata(m *SessionMetadata) {
	e.object(2 + present(m.UpdatedAt != nil, m.ParentSessionID != "", m.SessionName != nil, m.Cwd != ""))
	e.full("id", m.ID)
	e.count("createdAt", m.CreatedAt, 0)
	if m.UpdatedAt != nil {
		e.count("updatedAt", *m.UpdatedAt, 0)
	}
	e.optional("parentSessionId", m.ParentSessionID)
	e.optionalText("sessionName", m.SessionName)
	e.optional("cwd", m.Cwd)
}

func (e *encoder) model(m *ModelMetadata) {
	e.object(11)
	e.full("provider", m.Provider)
	e.full("id", m.ID)
	e.full("name", m.Name)
	e.full("api", m.API)
	e.boolean("reasoning", m.Reasoning)
	choices(e, "input", inputKinds, m.Input)
	e.count("contextWindow", m.ContextWindow, 1)
	e.count("maxTokens", m.MaxTokens, 1)
	e.key("cost")
	e.object(4)
	e.money("input", m.Cost.Input)
	e.money("output", m.Cost.Output)
	e.money("cacheRead", m.Cost.CacheRead)
	e.money("cacheWrite", m.Cost.CacheWrite)
	e.require(len(m.SupportedThinkingLevels) > 0)
	choices(e, "supportedThinkingLevels", thinkingLevels, m.SupportedThinkingLevels)
	e.boolean("authenticated", m.Authenticated)
}

// choices writes a list of words of a closed list.
func choices[T ~string](e *encoder, name string, list, vs []T) {
	e.key(name)
	e.array(len(vs))
	for _, v := range vs {
		e.require(oneOf(list, v))
		e.b = appendText(e.b, string(v))
	}
}

func (e *encoder) sessionSnapshot(name string, s *SessionSnapshot) {
	e.key(name)
	if s == nil {
		e.invalid = true
		return
	}
	e.object(13 + present(s.Name != nil))
	e.full("id", s.ID)
	e.optionalText("name", s.Name)
	e.full("cwd", s.Cwd)
	e.count("createdAt", s.CreatedAt, 0)
	e.count("updatedAt", s.UpdatedAt, 0)
	choice(e, "phase", phases, s.Phase)
	e.modelRef(&s.Model)
	choice(e, "thinkingLevel", thinkingLevels, s.ThinkingLevel)
	e.boolean("attached", s.Attached)
	e.boolean("locked", s.Locked)
	e.count("revision", s.Revision, 0)
	e.items("transcript", s.Transcript)
	for _, it := range s.QueuedSteer {
		e.require(isUser(it))
	}
	e.items("queuedSteer", s.QueuedSteer)
	e.count("queuedSteerCount", s.QueuedSteerCount, 0)
}

func (e *encoder) items(name string, list []Item) {
	e.key(name)
	e.array(len(list))
	for _, it := range list {
		e.item(it, depthTranscriptItem)
	}
}
