-- One row that is written to see whether the database takes writes.
CREATE TABLE health (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	at INTEGER NOT NULL
) STRICT;
