-- Where a turn ran; empty for this host, where all did before.
ALTER TABLE turns ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';

-- An agent has an id of its own for a session in each place.
CREATE TABLE new_natives (
	session TEXT NOT NULL REFERENCES sessions (id),
	agent   TEXT NOT NULL,
	sandbox TEXT NOT NULL, -- empty for this host
	native  TEXT NOT NULL,
	PRIMARY KEY (session, agent, sandbox)
) STRICT, WITHOUT ROWID;
INSERT INTO new_natives (session, agent, sandbox, native) SELECT session, agent, '', native FROM session_natives;
DROP TABLE session_natives;
ALTER TABLE new_natives RENAME TO session_natives;
