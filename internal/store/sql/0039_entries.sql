-- Consultations and work are entries of sessions, like turns. Entries are numbered in the order in which they end.
ALTER TABLE turns ADD COLUMN kind TEXT NOT NULL DEFAULT '' CHECK (kind IN ('', 'consultation', 'work')); -- empty: a turn
ALTER TABLE turns ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN asks TEXT NOT NULL DEFAULT ''; -- the turn whose agent asked for it
ALTER TABLE turns ADD COLUMN number INTEGER NOT NULL DEFAULT 0; -- 0 until it ended
ALTER TABLE turns ADD COLUMN upto INTEGER NOT NULL DEFAULT 0; -- the last entry that its prompt told of, by its number
UPDATE turns SET number = seq WHERE ended > 0;
-- A turn that was steered into another one ends with it.
UPDATE turns SET number = coalesce((SELECT host.number FROM turns host WHERE host.id = turns.steered_into), 0)
	WHERE steered_into <> '';
DROP INDEX turns_of;
CREATE INDEX turns_of ON turns (session, number);
CREATE INDEX turns_number ON turns (number) WHERE number > 0;
CREATE INDEX turns_steered ON turns (steered_into) WHERE steered_into <> '';
CREATE INDEX turns_aside ON turns (chat, topic, number) WHERE kind <> '';

-- The arguments of tools as JSON, and the groups that a user wrote in.
ALTER TABLE steps ADD COLUMN input TEXT NOT NULL DEFAULT '';
CREATE INDEX turns_group ON turns (person, chat) WHERE chat < 0;

-- The agent's own session has one of two lanes: the turns of the conversation, or what is beside them.
CREATE TABLE lanes (
	session  TEXT    NOT NULL REFERENCES sessions (id),
	agent    TEXT    NOT NULL,
	sandbox  TEXT    NOT NULL,
	lane     TEXT    NOT NULL DEFAULT '' CHECK (lane IN ('', 'aside')),
	id       TEXT    NOT NULL,
	told     TEXT    NOT NULL DEFAULT '', -- the last own entry whose prompt the agent accepted
	upto     INTEGER NOT NULL DEFAULT 0,  -- the number of the last entry that an accepted prompt told it of
	offered  INTEGER NOT NULL DEFAULT 0,  -- the same for a prompt of which it is unknown
	terminal INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (session, agent, sandbox, lane)
) STRICT, WITHOUT ROWID;
INSERT INTO lanes (session, agent, sandbox, id, told, upto, terminal)
	SELECT session, agent, sandbox, id, told, coalesce((SELECT number FROM turns WHERE turns.id = told), 0), terminal
	FROM agent_sessions;
DROP TABLE agent_sessions;
ALTER TABLE lanes RENAME TO agent_sessions;
CREATE INDEX agent_sessions_id ON agent_sessions (id);

-- Side sessions become sessions, with one entry that has what was said.
INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens, person, archived)
	SELECT id, chat, topic, '💬 ' || agent, dir, used, used, 1, 0, 0, max(chat, 0), 1 FROM consults;
INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, started, ended, answer,
	outcome, delivered, wants, sandbox, kind, number)
	SELECT 'consult-' || id, id, chat, topic, max(chat, 0),
		CASE WHEN said LIKE 'Question: %' AND instr(said, char(10) || 'Answer: ') > 0
			THEN substr(said, 11, instr(said, char(10) || 'Answer: ') - 11) ELSE '' END, 0, 'done', agent, model, used, used,
		used, CASE WHEN said LIKE 'Question: %' AND instr(said, char(10) || 'Answer: ') > 0
			THEN trim(substr(said, instr(said, char(10) || 'Answer: ') + 9), char(10)) ELSE trim(said, char(10)) END,
		'{"usage":{}}', 1, CASE effort WHEN '' THEN '' ELSE json_object('effort', effort) END, sandbox, 'consultation',
		(SELECT coalesce(max(number), 0) FROM turns) + row_number() OVER (ORDER BY used, id)
	FROM consults;
UPDATE sessions SET title = (SELECT CASE prompt WHEN '' THEN title ELSE substr(replace(prompt, char(10), ' '), 1, 60) END
	FROM turns WHERE turns.session = sessions.id AND kind <> '') WHERE id IN (SELECT id FROM consults);
INSERT OR IGNORE INTO agent_sessions (session, agent, sandbox, lane, id, told, upto)
	SELECT c.id, c.agent, c.sandbox, 'aside', c.own, t.id, t.number
	FROM consults c JOIN turns t ON t.id = 'consult-' || c.id WHERE c.own <> '';
INSERT OR IGNORE INTO begun_sessions (id) SELECT own FROM consults WHERE own <> '';
DROP TABLE consults;
