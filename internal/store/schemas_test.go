package store

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// updateSchemas stores a database for each schema without a stored one. Stored ones do not change.
var updateSchemas = flag.Bool("update-schemas", false, "write missing files of testdata/schemas")

// seedRows are rows that the stored databases contain from a schema on.
var seedRows = map[int][]string{
	1: {
		`INSERT INTO inbox (id, raw, received, handled) VALUES (1, x'7b7d', 10, 20), (2, x'7b7d', 10, 0)`,
		`INSERT INTO letters (chat, topic, content, state, message, moved) VALUES (7, 0, x'7b7d', 'sent', 5, 1),
				(7, 0, x'7b7d', 'pending', 0, 1)`,
		`INSERT INTO cards (turn, content) VALUES ('done', x'7b7d'), ('draft:x', x'7b7d')`,
		`INSERT INTO card_parts (turn, part, state, message) VALUES ('done', 0, 'sent', 6),
				('queued:wait', 0, 'sent', 8)`,
		`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
				VALUES ('s', 7, 0, 'title', '/src', 1, 2, 3, 0.5, 9)`,
		`INSERT INTO session_natives (session, agent, native) VALUES ('s', 'codex', 'thread')`,
		`INSERT INTO conversations (chat, topic, session, agent, permission)
				VALUES (7, 0, 's', 'codex', 'accept-edits')`,
		`INSERT INTO turns (id, session, chat, topic, person, prompt, message, updates, state, agent, model, queued,
				started, ended, answer, outcome, delivered) VALUES
				('done', 's', 7, 0, 1, 'prompt of old', 1, '[1]', 'done', 'codex', 'm', 1, 2, 3, 'answer of old',
				'{"cost_usd":0.25,"usage":{"input":3}}', 1)`,
		`INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued,
				started) VALUES
				('run', 's', 7, 0, 1, 'p', 2, 'running', 'codex', '', 4, 5)`,
		`INSERT INTO turns (id, chat, topic, person, prompt, attachments, message, state, agent, model,
				queued) VALUES
				('wait', 7, 0, 1, 'p', '[{"path":"/f","name":"f","mime":"text/plain"}]', 3, 'queued', '', '', 6)`,
	},
	3: {
		`INSERT INTO asks (id, nonce, turn, session, chat, topic, agent, dir, digest, content, session_rule, rule,
				approvers, asked, expires, state, message, sent) VALUES
				('ask', 'n', 'run', 's', 7, 0, 'codex', '/src', 'd', '{}', '', '', '[1]', 1, 9, 'open', 11, 'sent')`,
		`INSERT INTO ask_natives (turn, native, ask) VALUES ('run', '1', 'ask')`,
		`INSERT INTO rules (id, chat, topic, session, agent, tool, dir, kind, value, text, person, created)
				VALUES ('rule', 7, 0, '', 'codex', 'Bash', '/src', 'command', 'ls', 'ls', 1, 1)`,
		`INSERT INTO audit (at, what, chat, topic, turn, ask, agent, tool, title, choice, person, rule,
				reason, same) VALUES
				(1, 'allowed', 7, 0, 'done', '', 'codex', 'Bash', 'ls', '', 1, '', '', 0)`,
	},
	4: {
		`INSERT INTO jobs (id, chat, topic, enabled, spec, created, next, reckoned) VALUES
				('job', 7, 0, 1, '{"name":"n","kind":"cron","source":"chat","schedule":"0 9 * * *",
			"session":"own","missed":"once","overlap":"skip"}', 1, 100, 1)`,
		`INSERT INTO job_runs (id, job, cause, due, stands_for, prompt, attempt, not_before, state, asked, ended,
				text, reason, changed, told, cost_usd) VALUES
				('job/1', 'job', 'schedule', 1, 1, 'p', 1, 0, 'done', 1, 2, 'text', '', 1, 1, 0.1)`,
		`INSERT INTO hook_seen (hook, seal, at) VALUES ('job', 'seal', 1)`,
	},
	5:  {`INSERT INTO own_sessions (chat, topic, name, session) VALUES (7, 0, 'own', 's')`},
	14: {`INSERT INTO rates (chat, every, burst, until) VALUES (7, 1000000000, 3, 0)`},
	16: {`INSERT INTO messages (key, turn, chat, topic, state, message, mark, content, moved)
			VALUES ('notice/x', '', 7, 0, 'pending', 0, 0, x'7b7d', 1)`},
	17: {`INSERT INTO background (run, turn, output, input, note) VALUES ('r', 'done', 1, 2, 'n')`},
	19: {`INSERT INTO summaries (session, until, text) VALUES ('s', 'done', 'in short')`},
	20: {`INSERT INTO consults (id, chat, topic, agent, model, effort, sandbox, dir, home, own, said, used)
			VALUES ('c', 7, 0, 'codex', '', '', '', '/src', '', 'beside', '', 1)`},
	24: {`INSERT INTO steps (turn, number, at, tool, title, took, err, change, output, lost)
			VALUES ('done', 1, 3, 'Bash', 'ls', 5, '', '', x'61', 0)`},
	26: {`INSERT INTO changes (id, chat, topic, session, title, at, sandbox, checkpoint, undone, commit_id, trees,
			files, added, removed, ignored) VALUES
			('done', 7, 0, 's', 't', 3, '', 0, 0, '', '{}', 1, 1, 0, 0)`},
	27: {`INSERT INTO budget_notes (period, scope, person, at) VALUES ('2026-11-28', 'day', 1, 1)`},
	28: {`INSERT INTO languages (id, chosen, heard) VALUES (7, 'de', 'en')`},
	29: {`INSERT INTO health (id, at) VALUES (1, 5)`},
	31: {`INSERT INTO alerts (key, kind, since, over) VALUES ('disk', 'disk', 1, 'over')`},
	32: {
		`INSERT INTO users (id, name, role, inviter, joined, greeted) VALUES (20, 'Ann', 'viewer', 7, 1, 1)`,
		`INSERT INTO invitations (hash, role, inviter, expires) VALUES (x'01', 'user', 7, 9)`,
	},
	33: {`INSERT INTO topics (chat, topic, shows) VALUES (7, 3, 'done')`},
	37: {`INSERT INTO begun_sessions (id) VALUES ('begun')`},
	39: {`INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, started,
			ended, answer, outcome, delivered, kind, role, asks, number, upto) VALUES
			('entry', 's', 7, 0, 1, 'p', 0, 'done', 'codex', 'm', 1, 2, 3, 'a', '{}', 1, 'work', 'r', 'done', 9, 8)`},
	41: {`INSERT INTO plan_limits (agent, account, limits) VALUES ('claude', '',
			'[{"window":{"span_ns":18000000000000},"used":0.61,"resets":"2026-11-27T18:30:00Z",
			"seen":"2026-11-27T16:00:00Z"}]')`},
	44: {`INSERT INTO former_chats (chat, former) VALUES (-1000000000007, -7)`},
}

func storedSchema(version int) string {
	return filepath.Join("testdata", "schemas", fmt.Sprintf("%04d.db.gz", version))
}

// TestEverySchemaIsMigrated migrates a stored database of each schema since the first. All rows survive, and no row
// refers to a missing one.
func TestEverySchemaIsMigrated(t *testing.T) {
	all, err := schema()
	must(t, err)
	names, err := fs.Glob(all.Migrations, "*.sql")
	must(t, err)
	if *updateSchemas {
		storeSchemas(t, all, names)
	}
	for version := 1; version <= len(names); version++ {
		path := filepath.Join(t.TempDir(), "ductor.db")
		must(t, unpack(storedSchema(version), path))
		db, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Errorf("schema %d: %v", version, err)
			continue
		}
		t.Run(fmt.Sprint(version), func(t *testing.T) { checkMigrated(t, db, version) })
		must(t, db.Close())
		must(t, Check(t.Context(), path))
	}
}

// minRows returns the minimum number of rows of today's tables, by the schema that added the table.
func minRows() map[int]map[string]int {
	return map[int]map[string]int{
		1: {"inbox": 2, "messages": 3, "cards": 2, "sessions": 1, "agent_sessions": 1, "conversations": 1, "turns": 3,
			"spent": 1, "begun_sessions": 1},
		3: {"asks": 1, "ask_requests": 1, "rules": 1, "audit": 1}, 4: {"jobs": 1, "job_runs": 1, "hook_seen": 1},
		5:  {"own_sessions": 1},
		14: {"rates": 1}, 17: {"background": 1}, 19: {"summaries": 1}, 24: {"steps": 1},
		26: {"changes": 1}, 27: {"budget_notes": 1},
		28: {"languages": 1}, 29: {"health": 1}, 31: {"alerts": 1}, 32: {"users": 1, "invitations": 1},
		33: {"topics": 1}, 41: {"plan_limits": 1}, 44: {"former_chats": 1},
	}
}

func checkMigrated(t *testing.T, db *DB, version int) {
	ctx := t.Context()
	for since, tables := range minRows() {
		for name, least := range tables {
			n, err := sqlite.One(ctx, db.file, sqlite.Value[int], `SELECT count(*) FROM `+name)
			if must(t, err); since <= version && n < least {
				t.Errorf("%s has %d rows, want %d", name, n, least)
			}
		}
	}
	orphans, err := sqlite.Many(ctx, db.file, func(r sqlite.Row) (s string, err error) {
		var row, key sql.NullInt64
		var parent string
		return s, r.Scan(&s, &row, &parent, &key)
	}, `PRAGMA foreign_key_check`)
	must(t, err)
	same(t, "rows that refer to missing ones", orphans, []string(nil))
	done := get[orchestrator.Turn](t)(db.Turn(ctx, "done"))
	if done.State != orchestrator.TurnDone || done.Prompt.Text != "prompt of old" ||
		done.Outcome.Text != "answer of old" || done.Outcome.CostUSD != 0.25 || !done.Delivered || done.Session != "s" {
		t.Errorf("the turn is %+v", done)
	}
	var open []string
	for _, turn := range get[[]orchestrator.Turn](t)(db.OpenTurns(ctx)) {
		open = append(open, fmt.Sprint(turn.ID, " ", turn.State, " ", len(turn.Prompt.Attachments)))
	}
	same(t, "open turns", open, []string{"run running 0", "wait queued 1"})
	s := get[orchestrator.Session](t)(db.Session(ctx, "s"))
	if s.AgentSessions[agentEnv("codex", "")].ID != "thread" || s.Title != "title" || s.Totals.Messages != 3 {
		t.Errorf("the session is %+v", s)
	}
	if c := get[orchestrator.Conversation](t)(db.Conversation(ctx, chatA)); c.Session != "s" ||
		c.Permission != cli.AcceptEdits {
		t.Errorf("the conversation is %+v", c)
	}
	if updates := get[[]orchestrator.Update](t)(db.PendingUpdates(ctx, 0, 9)); len(updates) != 1 || updates[0].ID != 2 {
		t.Errorf("the updates are %+v", updates)
	}
	if version >= 4 {
		if jobs := get[[]orchestrator.JobStatus](t)(db.Jobs(ctx)); len(jobs) != 1 ||
			jobs[0].Job.Schedule != "0 9 * * *" || jobs[0].Last == nil {
			t.Errorf("the jobs are %+v", jobs)
		}
	}
	if version >= 20 && version < 39 {
		checkConsult(t, db, "c", "", "beside")
	}
	found, err := sqlite.One(ctx, db.file, sqlite.Value[int],
		`SELECT count(*) FROM turns_text WHERE turns_text MATCH 'answer'`)
	if must(t, err); found != 1 {
		t.Errorf("the text of a turn is found %d times", found)
	}
}

// What was said in a side session of earlier versions becomes question and answer of its entry. The answers of users'
// later questions follow.
func TestSideSessionsBecomeEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	must(t, unpack(storedSchema(38), path))
	old, err := sql.Open("sqlite3", path)
	must(t, err)
	_, err = old.Exec(`INSERT INTO consults (id, chat, topic, agent, model, effort, sandbox, dir, home, own, said, used)
		VALUES ('said', 7, 0, 'codex', 'm', 'high', '', '/src', '', 'aside', ?1, 2),
		('cut', 7, 0, 'codex', 'm', '', '', '/src', '', 'aside-2', ?2, 1)`,
		"Question: why ever?\nAnswer: because\n\nQuestion: why?\nAnswer: so\n\n", "and so on\n\n")
	must(t, errors.Join(err, old.Close()))
	db, err := Open(t.Context(), path, Options{})
	must(t, err)
	defer db.Close()
	checkConsult(t, db, "said", "why ever?", "aside")
	checkConsult(t, db, "cut", "", "aside-2")
	last := get[orchestrator.Turn](t)(db.LastAside(t.Context(), chatA, "", orchestrator.ConsultationEntry))
	if last.Session != "said" || last.Outcome.Text != "because\n\nQuestion: why?\nAnswer: so" ||
		last.Wants.Effort != "high" {
		t.Errorf("the last is %+v", last)
	}
	if s := get[orchestrator.Session](t)(db.Session(t.Context(), "said")); s.Title != "why ever?" || !s.Archived {
		t.Errorf("its session is %+v", s)
	}
}

// checkConsult tests that a side session of earlier versions became a session with one entry, which its agent knows.
func checkConsult(t *testing.T, db *DB, id orchestrator.SessionID, asked string, own cli.AgentSessionID) {
	s := get[orchestrator.Session](t)(db.Session(t.Context(), id))
	all := get[[]orchestrator.Turn](t)(db.History(t.Context(), id, 9))
	if len(all) != 1 || all[0].Entry.Kind != orchestrator.ConsultationEntry || all[0].Prompt.Text != asked ||
		!all[0].Delivered || s.Conversation != chatA || s.Dir != "/src" {
		t.Fatalf("side session %s is %+v with %+v", id, s, all)
	}
	lane := orchestrator.AgentEnv{Agent: "codex", Lane: orchestrator.AsideLane}
	if has := s.AgentSessions[lane]; has.ID != own || has.Told != all[0].ID || has.UpTo != all[0].Entry.Number {
		t.Errorf("its agent has %+v", has)
	}
	if !get[bool](t)(db.Knows(t.Context(), own)) {
		t.Errorf("%s is not known as begun by ductor", own)
	}
}

// storeSchemas migrates one database from schema to schema, and stores it for each schema without a stored one.
func storeSchemas(t *testing.T, all sqlite.Schema, names []string) {
	path := filepath.Join(t.TempDir(), "old.db")
	so := fstest.MapFS{}
	for i, name := range names {
		text, err := fs.ReadFile(all.Migrations, name)
		must(t, err)
		so[name] = &fstest.MapFile{Data: text}
		db, err := sql.Open("sqlite3", path)
		must(t, err)
		for _, statement := range append([]string{string(text)}, seedRows[i+1]...) {
			_, err := db.Exec(statement)
			must(t, err)
		}
		_, err = db.Exec(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d; VACUUM`,
			all.ApplicationID, i+1))
		must(t, errors.Join(err, db.Close()))
		if _, err := os.Stat(storedSchema(i + 1)); err != nil {
			data, err := os.ReadFile(path)
			must(t, err)
			var packed bytes.Buffer
			w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			must(t, err)
			_, err = w.Write(data)
			must(t, errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(storedSchema(1)), 0o755)))
			must(t, os.WriteFile(storedSchema(i+1), packed.Bytes(), 0o644))
		}
	}
}

func unpack(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%w; go test ./internal/store -run TestEverySchema -update-schemas stores one", err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
