-- Side sessions: questions to models beside the turns of conversations.
CREATE TABLE consults (
	id      TEXT    PRIMARY KEY,
	chat    INTEGER NOT NULL,
	topic   INTEGER NOT NULL,
	agent   TEXT    NOT NULL,
	model   TEXT    NOT NULL,
	effort  TEXT    NOT NULL,
	sandbox TEXT    NOT NULL,
	dir     TEXT    NOT NULL,
	home    TEXT    NOT NULL, -- the session whose home its agent has
	own     TEXT    NOT NULL, -- the agent's own id
	said    TEXT    NOT NULL, -- the newest questions and answers
	used    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX consults_of ON consults (chat, topic, used);
