-- Bytes of the answer that came before the step. Earlier steps come before the answer.
ALTER TABLE steps ADD COLUMN said INTEGER NOT NULL DEFAULT 0;
