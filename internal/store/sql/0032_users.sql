-- Users who joined by an invitation of an owner. Those of the configuration are not here.
CREATE TABLE users (
	id      INTEGER PRIMARY KEY,
	name    TEXT    NOT NULL,
	role    TEXT    NOT NULL CHECK (role IN ('owner', 'user', 'viewer')),
	inviter INTEGER NOT NULL,
	joined  INTEGER NOT NULL,
	greeted INTEGER NOT NULL -- the owner and the user were told
) STRICT;

-- Open invitations. The code itself is nowhere.
CREATE TABLE invitations (
	hash    BLOB    PRIMARY KEY,
	role    TEXT    NOT NULL CHECK (role IN ('owner', 'user', 'viewer')),
	inviter INTEGER NOT NULL,
	expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
