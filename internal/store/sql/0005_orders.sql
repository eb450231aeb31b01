-- What an order wants otherwise than its conversation chose, as JSON; empty for nothing.
ALTER TABLE turns ADD COLUMN wants TEXT NOT NULL DEFAULT '';
-- Sessions that go on beside the current one of their conversation.
CREATE TABLE own_sessions (
	chat    INTEGER NOT NULL,
	topic   INTEGER NOT NULL,
	name    TEXT    NOT NULL,
	session TEXT    NOT NULL REFERENCES sessions (id),
	PRIMARY KEY (chat, topic, name)
) STRICT, WITHOUT ROWID;
