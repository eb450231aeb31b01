-- To which session an agent's own id of one belongs.
CREATE INDEX agent_sessions_id ON agent_sessions (id);
