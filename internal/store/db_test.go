package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	db := openAt(t, path)
	get[[]orchestrator.Update](t)(db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 5, Raw: []byte("x"),
		Received: noon}}))
	must(t, db.Close())
	must(t, db.Close())
	if _, err := db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 6}}); err == nil {
		t.Error("a closed database accepted a write")
	}
	if _, err := db.PendingUpdates(t.Context(), 0, 1); err == nil {
		t.Error("a closed database could be read")
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("the write-ahead log was not copied into the file")
	}
	same(t, "after opening again", get[[]orchestrator.Update](t)(openAt(t, path).PendingUpdates(t.Context(), 0, 9)),
		[]orchestrator.Update{{ID: 5, Raw: []byte("x"), Received: noon}})
}

// TestMigrationOfAUsedDatabase migrates a database of the first release with turns and conversations.
func TestMigrationOfAUsedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	all, err := schema()
	must(t, err)
	first := fstest.MapFS{}
	for _, name := range []string{"0001_start.sql", "0002_aborting.sql"} {
		text, err := fs.ReadFile(all.Migrations, name)
		must(t, err)
		first[name] = &fstest.MapFile{Data: text}
	}
	all.Migrations = first
	file, err := sqlite.Open(t.Context(), path, all, sqlite.Options{})
	must(t, err)
	err = file.Write(t.Context(), func(t *sqlite.Tx) error {
		for _, statement := range []string{
			`INSERT INTO conversations (chat, topic, agent) VALUES (7, 0, 'codex')`,
			`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
				VALUES ('s', 7, 0, '', '/', 1, 1, 1, 0, 0)`,
			`INSERT INTO session_natives (session, agent, native) VALUES ('s', 'codex', 'thread')`,
			`INSERT INTO turns (id, chat, topic, person, prompt, message, state, agent, model, queued) VALUES
				('run', 7, 0, 1, 'p', 1, 'running', '', '', 1), ('off', 7, 0, 1, 'p', 1, 'cancelled', '', '', 1)`,
			`INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, ended,
				answer) VALUES
				('done', 's', 7, 0, 1, 'p', 1, 'done', 'codex', '', 1, 1, 'a'),
				('other', 's', 7, 0, 1, 'p', 1, 'done', 'claude', '', 1, 1, 'a'),
				('unread', 's', 7, 0, 1, 'p', 1, 'failed', 'codex', '', 1, 1, '')`,
		} {
			if _, err := t.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, errors.Join(err, file.Close()))
	db := openAt(t, path)
	if c := get[orchestrator.Conversation](t)(db.Conversation(t.Context(), chatA)); c.Agent != "codex" ||
		c.Settings.Busy != "" {
		t.Errorf("the conversation is %+v", c)
	}
	if s := get[orchestrator.Session](t)(db.Session(t.Context(), "s")); len(s.AgentSessions) != 1 ||
		s.AgentSessions[agentEnv("codex", "")] != (orchestrator.AgentSession{ID: "thread", Told: "done", UpTo: 3}) {
		t.Errorf("the session is %+v", s)
	}
	for id, want := range map[cli.TurnID]orchestrator.TurnState{"run": orchestrator.TurnRunning,
		"off": orchestrator.TurnCancelled} {
		if turn := get[orchestrator.Turn](t)(db.Turn(t.Context(), id)); turn.State != want || turn.Entry.Into != "" ||
			turn.Sandbox != "" {
			t.Errorf("the turn is %+v", turn)
		}
	}
	invitation := orchestrator.Invitation{Hash: []byte{1}, Role: orchestrator.RoleViewer, By: 7, Expires: noon}
	must(t, db.Invite(t.Context(), invitation, orchestrator.AuditEntry{What: orchestrator.AuditUser}))
	same(t, "the invitations", get[[]orchestrator.Invitation](t)(db.Invitations(t.Context(), noon.Add(-1e9))),
		[]orchestrator.Invitation{invitation})
	user := orchestrator.JoinedUser{ID: 20, Name: "Ann", Role: orchestrator.RoleViewer, By: 7, Joined: noon.Add(-1e9)}
	if !get[bool](t)(db.Join(t.Context(), invitation.Hash, user,
		orchestrator.AuditEntry{What: orchestrator.AuditUser})) {
		t.Error("no user joined")
	}
	same(t, "the users", get[[]orchestrator.JoinedUser](t)(db.JoinedUsers(t.Context())),
		[]orchestrator.JoinedUser{user})
	opened(t, db, newApproval("a", "run", "1"), "d")
	must(t, errorOf2(db.DecideApproval(t.Context(), allowed("a"))))
}

// makeOlder creates a database as of before a migration, with the rows of the statements.
func makeOlder(t *testing.T, migration string, statements ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ductor.db")
	all, err := schema()
	must(t, err)
	old, before := all, fstest.MapFS{}
	names, err := fs.Glob(all.Migrations, "*.sql")
	must(t, err)
	for _, name := range names {
		if name < migration {
			text, err := fs.ReadFile(all.Migrations, name)
			must(t, err)
			before[name] = &fstest.MapFile{Data: text}
		}
	}
	old.Migrations = before
	file, err := sqlite.Open(t.Context(), path, old, sqlite.Options{})
	must(t, err)
	err = file.Write(t.Context(), func(t *sqlite.Tx) error {
		for _, statement := range statements {
			if _, err := t.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, errors.Join(err, file.Close()))
	return path
}

// Rights stored by an older version apply to the environment that their conversation used last.
func TestMigrationOfRights(t *testing.T) {
	path := makeOlder(t, "0035",
		`INSERT INTO conversations (chat, topic, agent, permission) VALUES (7, 0, 'codex', 'accept-edits')`,
		`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens) VALUES
			('s', 7, 0, '', '/plain', 1, 1, 1, 0, 0), ('b', 7, 0, '', '/box', 1, 1, 1, 0, 0)`,
		`INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, started,
			sandbox) VALUES
			('1', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, 1, ''),
			('2', 'b', 7, 0, 1, 'p', 1, 'done', '', '', 1, 1, 'box'),
			('3', NULL, 7, 0, 1, 'p', 1, 'queued', '', '', 1, 0, '')`,
		`INSERT INTO rules (id, chat, topic, session, agent, tool, dir, kind, value, text, person, created) VALUES
			('r', 7, 0, '', 'codex', 'Bash', '/plain', 'command', 'ls', 'ls', 1, 1),
			('q', 7, 0, '', 'codex', 'Bash', '/box', 'command', 'ls', 'ls', 1, 1)`)
	db := openAt(t, path)
	if c := get[orchestrator.Conversation](t)(db.Conversation(t.Context(), chatA)); c.GrantedIn != "box" ||
		c.Permission != cli.AcceptEdits {
		t.Errorf("the conversation is %+v", c)
	}
	for i, r := range get[[]orchestrator.Rule](t)(db.RulesOf(t.Context(), chatA)) {
		if want := []cli.Sandbox{"", "box"}[i]; r.Sandbox != want {
			t.Errorf("the rule of %s counts in %q", r.Dir, r.Sandbox)
		}
	}
}

// TestMigrationOfBegunSessions tests that all agent session IDs of an older version are known, except for those of
// terminals whose sessions were deleted.
func TestMigrationOfBegunSessions(t *testing.T) {
	db := openAt(t, makeOlder(t, "0037",
		`INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
			VALUES ('s', 7, 0, '', '/src', 1, 1, 1, 0, 0)`,
		`INSERT INTO agent_sessions (session, agent, sandbox, id, terminal) VALUES ('s', 'codex', '', 'current', 0),
			('s', 'claude', '', 'of-a-terminal', 1)`,
		`INSERT INTO consults (id, chat, topic, agent, model, effort, sandbox, dir, home, own, said, used) VALUES
			('c', 7, 0, 'codex', '', '', '', '/src', '', 'beside', '', 1),
			('d', 7, 0, 'codex', '', '', '', '/src', '', '', '', 1)`,
		`INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, run_note,
			delivered) VALUES
			('1', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, '{"s":"former-claude","m":"opus"}', 1),
			('2', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, '{"thread":"former-codex"}', 1),
			('3', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, 'former-copilot', 1),
			('4', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, '{"Input":3}', 1),
			('5', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, '', 1),
			('6', 's', 7, 0, 1, 'p', 1, 'done', '', '', 1, '{"s":"of-a-terminal"}', 1)`))
	must(t, db.SaveBegun(t.Context(), "new"))
	for _, id := range []cli.AgentSessionID{"current", "of-a-terminal", "beside", "former-claude", "former-codex",
		"former-copilot", "new"} {
		if !get[bool](t)(db.Knows(t.Context(), id)) {
			t.Errorf("%s is not known", id)
		}
	}
	must(t, db.DeleteSession(t.Context(), "s"))
	for id, known := range map[cli.AgentSessionID]bool{"current": true, "former-claude": true, "of-a-terminal": false,
		"": false, "other": false} {
		if get[bool](t)(db.Knows(t.Context(), id)) != known {
			t.Errorf("%q is known: %v", id, !known)
		}
	}
}
