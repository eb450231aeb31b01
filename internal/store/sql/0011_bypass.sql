-- When the bypass ends in which a turn was started; 0 for none.
ALTER TABLE turns ADD COLUMN bypass_until INTEGER NOT NULL DEFAULT 0;
