-- The accounts that a conversation chose, as JSON from agents to accounts, and the account of each turn.
ALTER TABLE conversations ADD COLUMN accounts TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN account TEXT NOT NULL DEFAULT '';

-- Each account of an agent has sessions of its own.
CREATE TABLE account_sessions (
	session  TEXT    NOT NULL REFERENCES sessions (id),
	agent    TEXT    NOT NULL,
	account  TEXT    NOT NULL DEFAULT '',
	sandbox  TEXT    NOT NULL,
	lane     TEXT    NOT NULL DEFAULT '' CHECK (lane IN ('', 'aside')),
	id       TEXT    NOT NULL,
	told     TEXT    NOT NULL DEFAULT '', -- the last own entry whose prompt the agent accepted
	upto     INTEGER NOT NULL DEFAULT 0,  -- the number of the last entry that an accepted prompt told it of
	offered  INTEGER NOT NULL DEFAULT 0,  -- the same for a prompt of which it is unknown
	terminal INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (session, agent, account, sandbox, lane)
) STRICT, WITHOUT ROWID;
INSERT INTO account_sessions (session, agent, sandbox, lane, id, told, upto, offered, terminal)
	SELECT session, agent, sandbox, lane, id, told, upto, offered, terminal FROM agent_sessions;
DROP TABLE agent_sessions;
ALTER TABLE account_sessions RENAME TO agent_sessions;
CREATE INDEX agent_sessions_id ON agent_sessions (id);
