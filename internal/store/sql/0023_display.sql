-- What a chat chose to be shown of turns.
ALTER TABLE conversations ADD COLUMN notify TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN think TEXT NOT NULL DEFAULT '';
