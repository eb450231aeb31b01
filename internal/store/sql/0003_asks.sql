-- What agents ask people. The ids of natives are the agents' own; one ask may stand for several of a turn.
CREATE TABLE asks (
	seq          INTEGER PRIMARY KEY,
	id           TEXT    NOT NULL UNIQUE,
	nonce        TEXT    NOT NULL,
	turn         TEXT    NOT NULL,
	session      TEXT    NOT NULL,
	chat         INTEGER NOT NULL,
	topic        INTEGER NOT NULL,
	agent        TEXT    NOT NULL,
	dir          TEXT    NOT NULL,
	digest       TEXT    NOT NULL, -- equal for identical requests
	content      TEXT    NOT NULL, -- JSON: the approval or the questions
	session_rule TEXT    NOT NULL,
	rule         TEXT    NOT NULL,
	approvers    TEXT    NOT NULL, -- JSON list
	asked        INTEGER NOT NULL,
	expires      INTEGER NOT NULL,
	state        TEXT    NOT NULL CHECK (state IN
		('open', 'allowed', 'denied', 'answered', 'withdrawn', 'expired')),
	person       INTEGER NOT NULL DEFAULT 0,
	ruled        TEXT    NOT NULL DEFAULT '',
	reason       TEXT    NOT NULL DEFAULT '',
	answers      TEXT    NOT NULL DEFAULT '', -- JSON list of lists
	decided      INTEGER NOT NULL DEFAULT 0,
	message      INTEGER NOT NULL DEFAULT 0,
	sent         TEXT    NOT NULL DEFAULT 'pending' CHECK (sent IN
		('pending', 'sending', 'sent', 'unknown', 'failed'))
) STRICT;
CREATE INDEX asks_open ON asks (seq) WHERE state = 'open';
CREATE INDEX asks_of ON asks (turn);
CREATE INDEX asks_at ON asks (chat, message) WHERE message <> 0;

CREATE TABLE ask_natives (
	seq    INTEGER PRIMARY KEY,
	turn   TEXT    NOT NULL,
	native TEXT    NOT NULL,
	ask    TEXT    NOT NULL REFERENCES asks (id) ON DELETE CASCADE,
	gone   INTEGER NOT NULL DEFAULT 0, -- the agent took it back
	UNIQUE (turn, native)
) STRICT;
CREATE INDEX ask_natives_of ON ask_natives (ask);

CREATE TABLE rules (
	seq     INTEGER PRIMARY KEY,
	id      TEXT    NOT NULL UNIQUE,
	chat    INTEGER NOT NULL,
	topic   INTEGER NOT NULL,
	session TEXT    NOT NULL, -- empty for a rule that lasts
	agent   TEXT    NOT NULL,
	tool    TEXT    NOT NULL,
	dir     TEXT    NOT NULL,
	kind    TEXT    NOT NULL CHECK (kind IN ('same', 'command', 'prefix', 'edits')),
	value   TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	person  INTEGER NOT NULL,
	created INTEGER NOT NULL
) STRICT;
CREATE INDEX rules_of ON rules (chat, topic);

CREATE TABLE audit (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	at     INTEGER NOT NULL,
	what   TEXT    NOT NULL CHECK (what IN
		('allowed', 'denied', 'answered', 'expired', 'withdrawn', 'ruled', 'revoked')),
	chat   INTEGER NOT NULL,
	topic  INTEGER NOT NULL,
	turn   TEXT    NOT NULL,
	ask    TEXT    NOT NULL,
	agent  TEXT    NOT NULL,
	tool   TEXT    NOT NULL,
	title  TEXT    NOT NULL,
	choice TEXT    NOT NULL,
	person INTEGER NOT NULL,
	rule   TEXT    NOT NULL,
	reason TEXT    NOT NULL,
	same   INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);

-- What becomes of a prompt that comes while a turn runs; empty for the default.
ALTER TABLE conversations ADD COLUMN busy TEXT NOT NULL DEFAULT '';
-- The running turn that this one was handed to. Its state is cancelled then: it never ran by itself.
ALTER TABLE turns ADD COLUMN steered_into TEXT NOT NULL DEFAULT '';
