package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
)

// statements are the writer's, prepared once.
type statements struct {
	begin, commit, rollback *sql.Stmt

	find, create, update, insert, remove *sql.Stmt

	putSnapshot, tail, dropChunks, putChunk *sql.Stmt

	addGarbage, firstGarbage, sweepEvents, sweepChunks, dropSnapshot, swept *sql.Stmt
}

func (s *statements) prepare(ctx context.Context, conn *sql.Conn) error {
	for _, p := range s.list() {
		stmt, err := conn.PrepareContext(ctx, p.text)
		if err != nil {
			return errors.Join(err, s.close())
		}
		*p.stmt = stmt
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, p := range s.list() {
		if *p.stmt != nil {
			errs = append(errs, (*p.stmt).Close())
		}
	}
	return errors.Join(errs...)
}

type prepared struct {
	stmt **sql.Stmt
	text string
}

func (s *statements) list() []prepared {
	return []prepared{
		{&s.begin, `BEGIN IMMEDIATE`},
		{&s.commit, `COMMIT`},
		{&s.rollback, `ROLLBACK`},

		{&s.find, `SELECT s.num, s.id, ` + metaColumns + `, coalesce(p.seq, 0), coalesce(p.items, 0),
			max(coalesce(p.seq, 0), coalesce((SELECT max(seq) FROM events WHERE session = s.num), 0))
			FROM sessions s LEFT JOIN snapshots p ON p.session = s.num WHERE s.id = ?`},
		{&s.create, `INSERT INTO sessions (id, created_at, updated_at, parent, name, cwd, provider, model, thinking, origin, active)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&s.update, `UPDATE sessions SET created_at = ?, updated_at = ?, parent = ?, name = ?, cwd = ?, provider = ?, model = ?,
			thinking = ?, origin = ?, active = ? WHERE num = ?`},
		{&s.insert, `INSERT INTO events (session, seq, at, kind, data) VALUES (?, ?, ?, ?, ?)`},
		{&s.remove, `DELETE FROM sessions WHERE num = ?`},

		{&s.putSnapshot, `INSERT OR REPLACE INTO snapshots (session, seq, items, head) VALUES (?, ?, ?, ?)`},
		{&s.tail, `SELECT first, items, data FROM chunks WHERE session = ? AND first < ? ORDER BY first DESC LIMIT 1`},
		{&s.dropChunks, `DELETE FROM chunks WHERE session = ? AND first >= ?`},
		{&s.putChunk, `INSERT INTO chunks (session, first, items, data) VALUES (?, ?, ?, ?)`},

		{&s.addGarbage, `INSERT INTO garbage (session, through, gone) VALUES (?, ?, ?)
			ON CONFLICT (session) DO UPDATE SET through = excluded.through, gone = excluded.gone`},
		{&s.firstGarbage, `SELECT session, through, gone FROM garbage ORDER BY session LIMIT 1`},
		{&s.sweepEvents, `DELETE FROM events WHERE session = ?1 AND seq <= (SELECT max(seq) FROM
			(SELECT seq FROM events WHERE session = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3))`},
		{&s.sweepChunks, `DELETE FROM chunks WHERE session = ?1 AND first <= (SELECT max(first) FROM
			(SELECT first FROM chunks WHERE session = ?1 ORDER BY first LIMIT ?2))`},
		{&s.dropSnapshot, `DELETE FROM snapshots WHERE session = ?`},
		{&s.swept, `DELETE FROM garbage WHERE session = ?`},
	}
}
