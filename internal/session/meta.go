package session

// Meta is what the index of sessions knows about one: enough to list it without reading its
// events. It is a fold of the events and can be rebuilt from them.
type Meta struct {
	ID        ID
	CreatedAt int64 // milliseconds since 1970
	UpdatedAt int64 // milliseconds since 1970, of the last event that changed the index
	Parent    ID
	Name      string
	Cwd       string
	Model     ModelRef
	Thinking  Thinking
	Origin    string
	Active    bool // a run is in progress: the session must be taken up at start
}

// Apply moves m past r and reports whether that changed it.
func (m *Meta) Apply(r Record) bool {
	switch e := r.Event.(type) {
	case Created:
		*m = Meta{
			ID: e.ID, CreatedAt: r.At, Parent: e.Parent, Name: e.Name, Cwd: e.Cwd,
			Model: e.Model, Thinking: e.Thinking, Origin: e.Origin,
		}
	case Renamed:
		m.Name = e.Name
	case ModelSet:
		m.Model, m.Thinking = e.Model, e.Thinking
	case ThinkingSet:
		m.Thinking = e.Thinking
	case RunStarted:
		m.Active = true
	case RunEnded:
		m.Active = false
	default:
		return false
	}
	m.UpdatedAt = r.At
	return true
}
