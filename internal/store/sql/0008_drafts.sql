-- When a card was saved last: what is kept beside the cards of turns, such as drafts, has no turn that says how old it is.
ALTER TABLE cards ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE card_parts ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
UPDATE cards SET saved = unixepoch() * 1000;
UPDATE card_parts SET saved = unixepoch() * 1000;
