package piwire

var (
	serverSnapshotFields = closed("serverId", "protocolVersion", "revision", "sessions", "models")
	metadataFields       = closed("id", "createdAt", "?updatedAt", "?parentSessionId", "?sessionName", "?cwd")
	modelFields          = closed("provider", "id", "name", "api", "reasoning", "input", "contextWindow", "maxTokens",
		"cost", "supportedThinkingLevels", "authenticated")
	modelCostFields       = closed("input", "output", "cacheRead", "cacheWrite")
	sessionSnapshotFields = closed("id", "?name", "cwd", "createdAt", "updatedAt", "phase", "model", "thinkingLevel",
		"attached", "locked", "revision", "transcript", "queuedSteer", "queuedSteerCount")
)

func (d *decoder) serverSnapshot() *ServerSnapshot {
	s := &ServerSnapshot{}
	for o := d.open(serverSnapshotFields); o.next(); {
		switch o.key {
		case "serverId":
			s.ServerID = d.full()
		case "protocolVersion":
			d.version()
		case "revision":
			s.Revision = d.count(0)
		case "sessions":
			s.Sessions = d.sessions()
		case "models":
			s.Models = list(d, (*decoder).model)
		}
	}
	return s
}

func (d *decoder) sessions() []SessionMetadata { return list(d, (*decoder).metadata) }

func (d *decoder) metadata() (m SessionMetadata) {
	for o := d.open(metadataFields); o.next(); {
		switch o.key {
		case "id":
			m.ID = d.full()
		case "createdAt":
			m.CreatedAt = d.count(0)
		case "updatedAt":
			at := d.count(0)
			m.UpdatedAt = &at
		case "parentSessionId":
			m.ParentSessionID = d.full()
		case "sessionName":
			m.SessionName = d.optionalText()
		case "cwd":
			m.Cwd = d.full()
		}
	}
	return m
}

func (d *decoder) model() (m ModelMetadata) {
	for o := d.open(modelFields); o.next(); {
		switch o.key {
		case "provider":
			m.Provider = d.full()
		case "id":
			m.ID = d.full()
		case "name":
			m.Name = d.full()
		case "api":
			m.API = d.full()
		case "reasoning":
			m.Reasoning = d.boolean()
		case "input":
			m.Input = list(d, (*decoder).inputKind)
		case "contextWindow":
			m.ContextWindow = d.count(1)
		case "maxTokens":
			m.MaxTokens = d.count(1)
		case "cost":
			m.Cost = d.modelCost()
		case "supportedThinkingLevels":
			m.SupportedThinkingLevels = list(d, (*decoder).thinkingLevel)
			d.bad = d.bad || len(m.SupportedThinkingLevels) == 0
		case "authenticated":
			m.Authenticated = d.boolean()
		}
	}
	return m
}

func (d *decoder) inputKind() InputKind { return word(d, inputKinds) }

func (d *decoder) thinkingLevel() ThinkingLevel { return word(d, thinkingLevels) }

func (d *decoder) modelCost() (c ModelCost) {
	for o := d.open(modelCostFields); o.next(); {
		switch o.key {
		case "input":
			c.Input = d.money()
		case "output":
			c.Output = d.money()
		case "cacheRead":
			c.CacheRead = d.money()
		case "cacheWrite":
			c.CacheWrite = d.money()
		}
	}
	return c
}

func (d *decoder) sessionSnapshot() *SessionSnapshot {
	s := &SessionSnapshot{}
	for o := d.open(sessionSnapshotFields); o.next(); {
		switch o.key {
		case "id":
			s.ID = d.full()
		case "name":
			s.Name = d.optionalText()
		case "cwd":
			s.Cwd = d.full()
		case "createdAt":
			s.CreatedAt = d.count(0)
		case "updatedAt":
			s.UpdatedAt = d.count(0)
		case "phase":
			s.Phase = word(d, phases)
		case "model":
			s.Model = d.modelRef()
		case "thinkingLevel":
			s.ThinkingLevel = word(d, thinkingLevels)
		case "attached":
			s.Attached = d.boolean()
		case "locked":
			s.Locked = d.boolean()
		case "revision":
			s.Revision = d.count(0)
		case "transcript":
			s.Transcript = list(d, (*decoder).item)
		case "queuedSteer":
			s.QueuedSteer = list(d, (*decoder).queuedItem)
		case "queuedSteerCount":
			s.QueuedSteerCount = d.count(0)
		}
	}
	return s
}

func (d *decoder) queuedItem() Item {
	it := d.item()
	d.bad = d.bad || !isUser(it)
	return it
}
