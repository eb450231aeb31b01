-- The audit records more than decisions, and says which call of a tool it is about, once however often that is replayed.
ALTER TABLE audit RENAME TO audit_decisions;
CREATE TABLE audit (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	at     INTEGER NOT NULL,
	what   TEXT    NOT NULL CHECK (what <> ''),
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
	same   INTEGER NOT NULL,
	call   TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO audit (id, at, what, chat, topic, turn, ask, agent, tool, title, choice, person, rule, reason, same)
	SELECT id, at, what, chat, topic, turn, ask, agent, tool, title, choice, person, rule, reason, same FROM audit_decisions;
DROP TABLE audit_decisions;
CREATE INDEX audit_at ON audit (at);
CREATE UNIQUE INDEX audit_call ON audit (turn, call) WHERE call <> '';
-- The call of a tool that was asked for; empty where the agent does not say.
ALTER TABLE ask_natives ADD COLUMN call TEXT NOT NULL DEFAULT '';
