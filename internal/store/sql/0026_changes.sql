-- What turns changed in the files of repositories, and checkpoints. They outlive their turns: their snapshots are to be forgotten with them.
CREATE TABLE changes (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE, -- of the turn or the checkpoint
	chat       INTEGER NOT NULL,
	topic      INTEGER NOT NULL,
	session    TEXT    NOT NULL,
	title      TEXT    NOT NULL,
	at         INTEGER NOT NULL,
	sandbox    TEXT    NOT NULL,
	checkpoint INTEGER NOT NULL,
	undone     INTEGER NOT NULL,
	commit_id  TEXT    NOT NULL,
	trees      TEXT    NOT NULL, -- JSON
	files      INTEGER NOT NULL,
	added      INTEGER NOT NULL,
	removed    INTEGER NOT NULL,
	ignored    INTEGER NOT NULL
) STRICT;
CREATE INDEX changes_of_conversation ON changes (chat, topic, seq);
CREATE INDEX changes_age ON changes (at);
