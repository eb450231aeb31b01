-- Every message of the bot that must arrive or change: answers, approvals, parts of cards, waiting turns.
CREATE TABLE messages (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT    NOT NULL UNIQUE,
	turn    TEXT    NOT NULL, -- empty for a message of no turn
	chat    INTEGER NOT NULL,
	topic   INTEGER NOT NULL,
	state   TEXT    NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'removed')),
	message INTEGER NOT NULL,
	mark    INTEGER NOT NULL,
	content BLOB, -- what it must end up showing; NULL once it does, or if the program knows
	moved   INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_owed ON messages (seq) WHERE content IS NOT NULL;
CREATE INDEX messages_of ON messages (turn) WHERE turn <> '';
CREATE INDEX messages_at ON messages (chat, message) WHERE message > 0;

INSERT INTO messages (key, turn, chat, topic, state, message, mark, content, moved)
	SELECT 'notice/' || id, '', chat, topic, state, message, 0, CASE WHEN state IN ('pending', 'sending') THEN content END, moved
	FROM notices ORDER BY id;
DROP TABLE notices;

-- The message of an approval whose arrival was unknown was that of the notice about it; -1 stood for one that may be missing too.
INSERT INTO messages (key, turn, chat, topic, state, message, mark, moved)
	SELECT 'approval/' || id, turn, chat, topic, CASE WHEN sent = 'sending' THEN 'unknown' ELSE sent END,
		CASE WHEN sent = 'sent' THEN message ELSE 0 END, 0, asked
	FROM asks WHERE sent <> 'pending' ORDER BY seq;
INSERT INTO messages (key, turn, chat, topic, state, message, mark, moved)
	SELECT 'approval/' || id || '/notice', turn, chat, topic, CASE WHEN message > 0 THEN 'sent' ELSE 'unknown' END, max(message, 0), 0, asked
	FROM asks WHERE sent IN ('sending', 'unknown') AND message <> 0 ORDER BY seq;
DROP INDEX asks_at;
ALTER TABLE asks DROP COLUMN message;
ALTER TABLE asks DROP COLUMN sent;

-- A number below zero was where in the answer a message ends that was being sent.
INSERT INTO messages (key, turn, chat, topic, state, message, mark, moved)
	SELECT 'card/' || p.turn || '/' || CASE p.part WHEN 1048576 THEN 'notice' WHEN 1048577 THEN 'file' ELSE p.part END,
		p.turn, coalesce(t.chat, 0), coalesce(t.topic, 0), CASE p.state WHEN 'failed' THEN 'removed' ELSE p.state END,
		max(p.message, 0), max(-p.message, 0), p.saved
	FROM card_parts p LEFT JOIN turns t ON t.id = p.turn WHERE p.turn NOT LIKE 'queued:%' ORDER BY p.turn, p.part;
INSERT INTO messages (key, turn, chat, topic, state, message, mark, moved)
	SELECT 'queued/' || t.id, t.id, t.chat, t.topic, p.state, max(p.message, 0), 0, p.saved
	FROM card_parts p JOIN turns t ON p.turn = 'queued:' || t.id ORDER BY t.seq;
DROP TABLE card_parts;
