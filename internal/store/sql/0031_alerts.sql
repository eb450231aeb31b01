-- Troubles that last and that the owner was told of.
CREATE TABLE alerts (
	key   TEXT    PRIMARY KEY,
	kind  TEXT    NOT NULL,
	since INTEGER NOT NULL,
	over  TEXT    NOT NULL -- what the owner is told when it is over
) STRICT, WITHOUT ROWID;
