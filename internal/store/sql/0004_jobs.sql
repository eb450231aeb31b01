-- What is to be asked again and again, or once, or when a webhook comes.
CREATE TABLE jobs (
	seq      INTEGER PRIMARY KEY,
	id       TEXT    NOT NULL UNIQUE,
	chat     INTEGER NOT NULL,
	topic    INTEGER NOT NULL,
	enabled  INTEGER NOT NULL,
	spec     TEXT    NOT NULL, -- JSON: all of the job that has no column
	created  INTEGER NOT NULL,
	next     INTEGER NOT NULL, -- when it is due; 0 for never
	reckoned INTEGER NOT NULL, -- what the clock showed when next was worked out
	digest   TEXT    NOT NULL DEFAULT '', -- of the result the chat was told last
	runs     INTEGER NOT NULL DEFAULT 0,
	cost_usd REAL    NOT NULL DEFAULT 0
) STRICT;

-- The id of a run is made of what started it: the same cause makes one run, whatever crashes.
CREATE TABLE job_runs (
	seq        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE,
	job        TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	cause      TEXT    NOT NULL CHECK (cause IN ('schedule', 'missed', 'hand', 'hook')),
	due        INTEGER NOT NULL,
	stands_for INTEGER NOT NULL,
	prompt     TEXT    NOT NULL,
	attempt    INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('waiting', 'asked', 'done', 'failed', 'aborted', 'skipped')),
	asked      INTEGER NOT NULL,
	ended      INTEGER NOT NULL,
	text       TEXT    NOT NULL,
	reason     TEXT    NOT NULL,
	changed    INTEGER NOT NULL,
	told       INTEGER NOT NULL, -- nothing is to be done about it any more
	cost_usd   REAL    NOT NULL
) STRICT;
CREATE INDEX job_runs_of ON job_runs (job, seq);
CREATE INDEX job_runs_open ON job_runs (seq) WHERE told = 0;

-- Deliveries of webhooks that were taken, so that none is taken twice.
CREATE TABLE hook_seen (
	hook TEXT    NOT NULL,
	seal TEXT    NOT NULL,
	at   INTEGER NOT NULL,
	PRIMARY KEY (hook, seal)
) STRICT, WITHOUT ROWID;
CREATE INDEX hook_seen_at ON hook_seen (at);
