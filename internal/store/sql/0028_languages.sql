-- The languages of users and groups. A private chat has the number of its user.
CREATE TABLE languages (
	id     INTEGER PRIMARY KEY,
	chosen TEXT NOT NULL, -- by /language; empty for none
	heard  TEXT NOT NULL  -- what Telegram named last; of a group, that of who last wrote
) STRICT;
