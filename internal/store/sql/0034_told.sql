-- When ductor learned of a silence, so that a clock that was set back does not prolong it.
ALTER TABLE rates ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
