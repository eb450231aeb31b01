-- A running turn that a person aborted: should ductor die before its agent is dead, the next one ends it.
ALTER TABLE turns ADD COLUMN aborting INTEGER NOT NULL DEFAULT 0;
