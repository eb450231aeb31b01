-- Which tools the agents of a conversation may use, as JSON; empty for all.
ALTER TABLE conversations ADD COLUMN tools TEXT NOT NULL DEFAULT '';
