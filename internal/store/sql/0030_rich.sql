-- Whether a chat sees rich messages; it stands in the row of its main topic, and is empty before it was asked.
ALTER TABLE conversations ADD COLUMN display TEXT NOT NULL DEFAULT '';
