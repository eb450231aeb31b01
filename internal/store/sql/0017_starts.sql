-- Where a turn begins: the run, its offsets, and what the agent's dialect must know to resume the turn. Without a run the turn
-- reached no agent; of those that run now it is unknown how far they came.
ALTER TABLE turns ADD COLUMN run TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN run_output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN run_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN run_note TEXT NOT NULL DEFAULT '';
UPDATE turns SET run = 'unknown' WHERE state = 'running';
-- After which turn an agent works in the background, and from where on that is to be read.
CREATE TABLE background (
    run    TEXT PRIMARY KEY,
    turn   TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    output INTEGER NOT NULL,
    input  INTEGER NOT NULL,
    note   TEXT NOT NULL
) STRICT;
