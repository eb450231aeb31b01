-- How often ductor crashed while an update was dealt with, or a turn ran or was shown.
ALTER TABLE inbox ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
