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

// indexSchema is the index as the newest of migrations leaves it; a test compares the two.
const indexSchema = `CREATE TABLE sessions (
	num        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so deleted events may be swept later
	id         TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,                  -- milliseconds since 1970, as everywhere
	updated_at INTEGER NOT NULL,
	parent     TEXT NOT NULL,
	name       TEXT NOT NULL,
	cwd        TEXT NOT NULL,
	provider   TEXT NOT NULL,
	model      TEXT NOT NULL,
	thinking   TEXT NOT NULL,
	origin     TEXT NOT NULL,
	active     INTEGER NOT NULL
);

CREATE INDEX active ON sessions (id) WHERE active`
