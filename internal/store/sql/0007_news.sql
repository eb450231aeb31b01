-- The turn whose card shows the result that the chat was told last, and how often the result was the same since.
ALTER TABLE jobs ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN same INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_shown ON jobs (shown);
