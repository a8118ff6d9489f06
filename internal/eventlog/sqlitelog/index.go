package sqlitelog

import "github.com/roost-dev/roost/internal/session"

// metaColumns are the columns of sessions after id, in the order of metaValues.
const metaColumns = `created_at, updated_at, parent, name, cwd, provider, model, thinking, origin, active`

// metaValues returns the values of metaColumns.
func metaValues(m session.Meta) []any {
	return []any{
		m.CreatedAt, m.UpdatedAt, string(m.Parent), m.Name, m.Cwd,
		m.Model.Provider, m.Model.ID, string(m.Thinking), m.Origin, m.Active,
	}
}

// metaFields returns where to scan id and metaColumns.
func metaFields(m *session.Meta) []any {
	return []any{
		&m.ID, &m.CreatedAt, &m.UpdatedAt, &m.Parent, &m.Name, &m.Cwd,
		&m.Model.Provider, &m.Model.ID, &m.Thinking, &m.Origin, &m.Active,
	}
}
