-- Where a turn ran, and where an agent's own id of a session means something; empty for this host, where all was before.
ALTER TABLE turns ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
ALTER TABLE session_natives ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
