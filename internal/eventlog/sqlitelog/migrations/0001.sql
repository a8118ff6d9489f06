-- The history of sessions. `history` shows it to a person:
--   SELECT * FROM history WHERE id = '…';

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO meta VALUES ('epoch', 1);

-- The index: a fold of the events, except for num.
CREATE TABLE sessions (
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

CREATE INDEX active ON sessions (id) WHERE active;

-- One row per event, clustered by session and in order.
CREATE TABLE events (
	session INTEGER NOT NULL, -- sessions.num
	seq     INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	kind    TEXT NOT NULL,    -- for people
	data    BLOB NOT NULL,    -- roost.eventlog.v1.Record
	PRIMARY KEY (session, seq)
) WITHOUT ROWID;

-- What replaces the events up to seq.
CREATE TABLE snapshots (
	session INTEGER PRIMARY KEY, -- sessions.num
	seq     INTEGER NOT NULL,
	items   INTEGER NOT NULL,    -- how many there are in all chunks
	head    BLOB NOT NULL        -- roost.eventlog.v1.Head
);

-- The transcript of a snapshot, cut into pieces.
CREATE TABLE chunks (
	session INTEGER NOT NULL, -- sessions.num
	first   INTEGER NOT NULL, -- index of its first item
	items   INTEGER NOT NULL,
	data    BLOB NOT NULL,    -- roost.eventlog.v1.Items
	UNIQUE (session, first)
);

-- Rows that nobody reads any more and that are removed bit by bit: the events of a session
-- up to through, and its chunks when gone is set.
CREATE TABLE garbage (
	session INTEGER PRIMARY KEY,
	through INTEGER NOT NULL,
	gone    INTEGER NOT NULL
);

CREATE VIEW history AS
	SELECT s.id, e.seq, strftime('%Y-%m-%d %H:%M:%f', e.at / 1000.0, 'unixepoch') AS at, e.kind, length(e.data) AS bytes
	FROM events e JOIN sessions s ON s.num = e.session
	ORDER BY s.id, e.seq;
