-- What turns, and questions beside them, used: it stays when sessions are deleted.
CREATE TABLE spent (
	id          TEXT    PRIMARY KEY,
	at          INTEGER NOT NULL, -- the end
	chat        INTEGER NOT NULL,
	topic       INTEGER NOT NULL,
	person      INTEGER NOT NULL,
	job         TEXT    NOT NULL,
	agent       TEXT    NOT NULL,
	model       TEXT    NOT NULL,
	input       INTEGER NOT NULL,
	output      INTEGER NOT NULL,
	cache_read  INTEGER NOT NULL,
	cache_write INTEGER NOT NULL,
	cost_usd    REAL    NOT NULL,
	took        INTEGER NOT NULL -- ns
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_at ON spent (at);
INSERT INTO spent SELECT id, ended, chat, topic, person, coalesce(json_extract(nullif(wants, ''), '$.own'), ''), agent,
	coalesce(json_extract(outcome, '$.model'), model),
	coalesce(json_extract(outcome, '$.usage.input'), 0), coalesce(json_extract(outcome, '$.usage.output'), 0),
	coalesce(json_extract(outcome, '$.usage.cache_read'), 0), coalesce(json_extract(outcome, '$.usage.cache_write'), 0),
	CAST(coalesce(json_extract(outcome, '$.cost_usd'), 0) AS REAL), coalesce(json_extract(outcome, '$.duration_ns'), 0)
	FROM turns WHERE ended > 0 AND started > 0 AND outcome IS NOT NULL AND outcome <> '';
-- Of which budgets users were warned in a period, and on which days all budgets are lifted.
CREATE TABLE budget_notes (
	period TEXT    NOT NULL, -- 2006-01-02 or 2006-01
	scope  TEXT    NOT NULL, -- of the warning; 'lifted' for a day
	person INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (period, scope)
) STRICT, WITHOUT ROWID;
