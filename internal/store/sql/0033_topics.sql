-- Topics that ductor opened, and what the icon of each shows.
CREATE TABLE topics (
	chat  INTEGER NOT NULL,
	topic INTEGER NOT NULL,
	shows TEXT    NOT NULL,
	PRIMARY KEY (chat, topic)
) STRICT, WITHOUT ROWID;
