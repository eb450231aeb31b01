-- The environment in which rights were granted; empty for this host. Those of before count where their conversation worked last.
ALTER TABLE conversations ADD COLUMN granted_in TEXT NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
ALTER TABLE rules ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
UPDATE conversations SET granted_in = coalesce((SELECT sandbox FROM turns
	WHERE turns.chat = conversations.chat AND turns.topic = conversations.topic AND started > 0 ORDER BY seq DESC LIMIT 1), '');
UPDATE asks SET sandbox = coalesce((SELECT turns.sandbox FROM turns WHERE turns.id = asks.turn), '');
UPDATE rules SET sandbox = coalesce((SELECT turns.sandbox FROM turns JOIN sessions ON sessions.id = turns.session
	WHERE turns.chat = rules.chat AND turns.topic = rules.topic AND sessions.dir = rules.dir AND turns.started > 0 ORDER BY turns.seq DESC LIMIT 1), '');
