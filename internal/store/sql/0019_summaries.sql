-- What was said in a session up to a turn, in short, for agents that join it.
CREATE TABLE summaries (
	session TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	until   TEXT NOT NULL, -- the last turn that it tells of
	text    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
