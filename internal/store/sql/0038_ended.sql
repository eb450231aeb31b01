-- A message shows its end if its mark is -1: until now nothing was known of that, and all that are over are taken to show it.
UPDATE messages SET mark = -1 WHERE state = 'sent' AND key >= 'queued/' AND key < 'queued0'
	AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = messages.turn AND t.state IN ('queued', 'running'));
UPDATE messages SET mark = -1 WHERE state = 'sent' AND key >= 'approval/' AND key < 'approval0'
	AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.turn = messages.turn AND a.state = 'open');
