-- Sessions can be pinned, put aside, and forked from a turn of another session.
ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT ''; -- the session that it was forked from; empty for none
ALTER TABLE sessions ADD COLUMN parent_turn INTEGER NOT NULL DEFAULT 0; -- the last turn of that one which it has, by its seq

-- What was said, to be searched. A turn is indexed once, when it has ended: no first text waits for it.
CREATE VIEW said AS SELECT seq AS rowid, prompt, answer FROM turns WHERE ended > 0;
CREATE VIRTUAL TABLE turns_text USING fts4(content="said", prompt, answer, order=desc, tokenize=unicode61);
INSERT INTO turns_text (docid, prompt, answer) SELECT seq, prompt, answer FROM turns WHERE ended > 0;
-- What is indexed must be what the row has: out with it before a change, in with it after.
CREATE TRIGGER turns_text_before BEFORE UPDATE OF ended, prompt, answer ON turns WHEN old.ended > 0 BEGIN
	DELETE FROM turns_text WHERE docid = old.seq;
END;
CREATE TRIGGER turns_text_after AFTER UPDATE OF ended, prompt, answer ON turns WHEN new.ended > 0 BEGIN
	INSERT INTO turns_text (docid, prompt, answer) VALUES (new.seq, new.prompt, new.answer);
END;
CREATE TRIGGER turns_text_deleted BEFORE DELETE ON turns WHEN old.ended > 0 BEGIN
	DELETE FROM turns_text WHERE docid = old.seq;
END;
CREATE TRIGGER turns_text_inserted AFTER INSERT ON turns WHEN new.ended > 0 BEGIN
	INSERT INTO turns_text (docid, prompt, answer) VALUES (new.seq, new.prompt, new.answer);
END;
