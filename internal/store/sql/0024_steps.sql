-- What agents did in turns: tools with the ends of their outputs, and changed files with their diffs.
CREATE TABLE steps (
	seq       INTEGER PRIMARY KEY,
	turn      TEXT    NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
	number    INTEGER NOT NULL, -- in the turn, from 1 on
	at        INTEGER NOT NULL, -- the end of the turn
	tool      TEXT    NOT NULL, -- empty for a changed file
	title     TEXT    NOT NULL,
	took      INTEGER NOT NULL, -- ns
	exit_code INTEGER,
	err       TEXT    NOT NULL,
	change    TEXT    NOT NULL,
	output    BLOB    NOT NULL,
	lost      INTEGER NOT NULL, -- bytes before output
	UNIQUE (turn, number)
) STRICT;
CREATE INDEX steps_age ON steps (at);
