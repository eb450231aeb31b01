-- The user that a session belongs to, who may take it to another chat; 0 for none. A private chat has the number of its user.
ALTER TABLE sessions ADD COLUMN person INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET person = CASE WHEN chat > 0 THEN chat
	ELSE coalesce((SELECT person FROM turns WHERE session = sessions.id AND rights = '' ORDER BY seq LIMIT 1), 0) END
	WHERE id NOT IN (SELECT session FROM own_sessions);
CREATE INDEX sessions_person ON sessions (person, used) WHERE person <> 0;
