-- The last turn of a session that an agent knows: it was told all up to that one, which it was asked itself. Until now an agent was taken to
-- know each of its turns. Of those that ended without an answer it may have read nothing, so it is told them once more.
ALTER TABLE agent_sessions ADD COLUMN told TEXT NOT NULL DEFAULT '';
UPDATE agent_sessions SET told = coalesce((SELECT t.id FROM turns t WHERE t.session = agent_sessions.session AND t.agent = agent_sessions.agent
	AND t.sandbox = agent_sessions.sandbox AND (t.state = 'done' OR t.state IN ('failed', 'aborted', 'interrupted') AND t.answer <> '')
	ORDER BY t.seq DESC LIMIT 1), '');
-- Whether the agent's session began in a terminal. What was said there is known to that agent alone.
ALTER TABLE agent_sessions ADD COLUMN terminal INTEGER NOT NULL DEFAULT 0;
