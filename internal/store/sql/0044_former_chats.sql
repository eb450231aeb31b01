-- The IDs of groups before they became supergroups.
CREATE TABLE former_chats (
	chat   INTEGER PRIMARY KEY,
	former INTEGER NOT NULL
) STRICT;
