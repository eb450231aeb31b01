-- What a turn's agent may do unasked, as JSON; empty for what the chat chose. Jobs asked with the chat's rights before.
ALTER TABLE turns ADD COLUMN rights TEXT NOT NULL DEFAULT '';
UPDATE turns SET rights = '{"of":"job"}' WHERE wants <> '';
-- When the bypass that a conversation chose ends; 0 for a conversation that chose none.
ALTER TABLE conversations ADD COLUMN bypass_until INTEGER NOT NULL DEFAULT 0;
