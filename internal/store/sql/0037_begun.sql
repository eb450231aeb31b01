-- The id of every session that an agent began for ductor, also of those that ductor forgot since: what was said there is of its chat alone.
CREATE TABLE begun_sessions (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
-- The notes of turns have ids that were forgotten until now.
INSERT OR IGNORE INTO begun_sessions (id)
	SELECT id FROM agent_sessions WHERE terminal = 0
	UNION SELECT own FROM consults WHERE own <> ''
	UNION SELECT id FROM (SELECT CASE WHEN json_valid(run_note) THEN coalesce(json_extract(run_note, '$.s'), json_extract(run_note, '$.thread'))
		ELSE run_note END AS id FROM turns WHERE run_note <> '')
		WHERE id <> '' AND id NOT IN (SELECT id FROM agent_sessions WHERE terminal = 1);
