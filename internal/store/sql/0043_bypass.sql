-- Who granted a bypass: DB.life of the process. Only its own bypasses apply.
ALTER TABLE conversations ADD COLUMN bypass_life TEXT NOT NULL DEFAULT '';
