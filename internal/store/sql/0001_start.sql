-- Times are unix milliseconds in UTC, 0 for none. Flags are 0 or 1.

CREATE TABLE inbox (
	id       INTEGER PRIMARY KEY, -- Telegram's update id
	raw      BLOB    NOT NULL,
	received INTEGER NOT NULL,
	handled  INTEGER NOT NULL DEFAULT 0 -- when it was; 0 while it is not
) STRICT;
CREATE INDEX inbox_pending ON inbox (id) WHERE handled = 0;

CREATE TABLE letters (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	chat    INTEGER NOT NULL,
	topic   INTEGER NOT NULL,
	content BLOB    NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed')),
	message INTEGER NOT NULL DEFAULT 0,
	moved   INTEGER NOT NULL
) STRICT;
CREATE INDEX letters_open ON letters (id) WHERE state IN ('pending', 'sending');

CREATE TABLE cards (
	turn    TEXT PRIMARY KEY,
	content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Parts are known before the content is: the card grows while the turn runs.
CREATE TABLE card_parts (
	turn    TEXT    NOT NULL,
	part    INTEGER NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed')),
	message INTEGER NOT NULL,
	PRIMARY KEY (turn, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
	seq      INTEGER PRIMARY KEY,
	id       TEXT    NOT NULL UNIQUE,
	chat     INTEGER NOT NULL,
	topic    INTEGER NOT NULL,
	title    TEXT    NOT NULL,
	dir      TEXT    NOT NULL,
	created  INTEGER NOT NULL,
	used     INTEGER NOT NULL,
	messages INTEGER NOT NULL,
	cost_usd REAL    NOT NULL,
	tokens   INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of ON sessions (chat, topic);

CREATE TABLE session_natives (
	session TEXT NOT NULL REFERENCES sessions (id),
	agent   TEXT NOT NULL,
	native  TEXT NOT NULL,
	PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
	chat       INTEGER NOT NULL,
	topic      INTEGER NOT NULL,
	session    TEXT REFERENCES sessions (id), -- the current one
	agent      TEXT NOT NULL DEFAULT '',
	model      TEXT NOT NULL DEFAULT '',
	effort     TEXT NOT NULL DEFAULT '',
	permission TEXT NOT NULL DEFAULT '',
	dir        TEXT NOT NULL DEFAULT '',
	role       TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (chat, topic)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
	seq         INTEGER PRIMARY KEY, -- the order of the queue
	id          TEXT    NOT NULL UNIQUE,
	session     TEXT REFERENCES sessions (id),
	again       TEXT, -- the turn this one repeats
	chat        INTEGER NOT NULL,
	topic       INTEGER NOT NULL,
	person      INTEGER NOT NULL,
	prompt      TEXT    NOT NULL,
	attachments TEXT, -- JSON list
	message     INTEGER NOT NULL,
	updates     TEXT, -- JSON list of inbox ids
	state       TEXT    NOT NULL CHECK (state IN
		('queued', 'running', 'done', 'failed', 'aborted', 'cancelled', 'interrupted')),
	agent       TEXT    NOT NULL,
	model       TEXT    NOT NULL,
	queued      INTEGER NOT NULL,
	started     INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	answer      TEXT    NOT NULL DEFAULT '',
	outcome     TEXT, -- JSON: all of the outcome but its state and its text
	delivered   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX turns_open ON turns (seq) WHERE delivered = 0;
CREATE INDEX turns_of ON turns (session, seq);
CREATE UNIQUE INDEX turns_again ON turns (again) WHERE again IS NOT NULL;
