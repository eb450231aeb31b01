-- The life (DB.life) of the process in which a user granted the bypass. The bypass applies only in that process.
ALTER TABLE conversations ADD COLUMN bypass_life TEXT NOT NULL DEFAULT '';
