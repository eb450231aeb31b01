package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/app"
	"ductor/internal/secrets"
	"ductor/internal/sim/telegram"
)

// After use, a secret answer to an agent's question is in none of ductor's files: the inbox, free pages and the log
// of the database, the agent's output, and the daemon's log.
func TestASecretAnswerIsKeptNowhere(t *testing.T) {
	town := surroundings(t, nil)
	town.agent, town.permission = "codex", "ask"
	o := town.ordealWithLog()
	const word = "quaint-zebra-7041"
	o.say(`[[start]] [[question "Which password?" secret=1]]`)
	asked := o.awaitButton("✍ Own words…")
	o.pressOn(asked, "✍ Own words…") // then ductor knows the message, so that a reply to it is recognized
	// Longer than a page of the database: the rest lies on overflow pages, which are freed.
	secret := strings.TrimSpace(strings.Repeat(word+" ", 200))
	o.chat.Person().Send(o.chat, secret, telegram.ReplyTo(asked.ID))
	o.awaitDone(1)
	o.await("The answer has 3599 characters.")
	checkNotOnDisk(t, o.cfg.Storage.Dir, word)

	// An answer that comes too late is not stored either.
	o.chat.Person().Send(o.chat, secret, telegram.ReplyTo(asked.ID))
	o.await("decided")
	checkNotOnDisk(t, o.cfg.Storage.Dir, word)
	_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
	o.daemon.exit(t)
	checkNotOnDisk(t, o.cfg.Storage.Dir, word)
}

// If an agent prints ductor's token, its own keys, or the project's secrets, they are never shown, not even in part
// or for a moment, and never stored.
func TestSecretsThatAnAgentPrints(t *testing.T) {
	town := surroundings(t, nil)
	const apiKey, projectKey, answer = "sk-ant-0123456789-abcdef", "sk_live_zyxw9876543210", "quaint-zebra-7041"
	t.Setenv("ANTHROPIC_API_KEY", apiKey)
	town.permission = "ask"
	dir := town.cfg.Projects.DefaultDir
	token := filepath.Join(t.TempDir(), "token")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".env"), []byte("STRIPE_SECRET_KEY="+projectKey+"\n"), 0o600),
		os.WriteFile(token, []byte(town.srv.Token()), 0o600)); err != nil {
		t.Fatal(err)
	}
	o := town.ordealWithLog()
	o.say(
		`[[start]] [[text "my key: " env=ANTHROPIC_API_KEY chunk=1 delay=30ms]] [[tool cmd="cat .env >&2; false"]] [[text "and: " file=%q chunk=3]]
		[[text ", token: " file=%q chunk=5]] [[ask cmd="cat .env; echo %s"]] [[text " the end"]]`, filepath.Join(dir, ".env"), token, projectKey)
	asked := o.awaitButton("⛔ Deny")
	if asked.HasButton("✅ Allow this session") || !strings.Contains(asked.Text, secrets.Removed) {
		t.Errorf("the approval: %+v", asked)
	}
	o.pressOn(asked, "⛔ Deny")
	done := o.awaitDone(1)
	if n := strings.Count(done.Text, secrets.Removed); n < 3 ||
		!strings.Contains(done.Text, "my key: "+secrets.Removed) {
		t.Errorf("%d places show that something was removed: %s", n, done.Text)
	}
	for _, secret := range []string{apiKey, projectKey, town.srv.Token()} {
		checkNotShown(t, o.chat, secret[:12])
		checkNotStored(t, o.database(), secret)
		if log, err := os.ReadFile(filepath.Join(o.cfg.Storage.Dir, "ductor.log")); err != nil || bytes.Contains(log, []byte(secret)) {
			t.Errorf("the log holds %s: %v", secret, err)
		}
	}

	// Requesting a secret in the chat does not reveal it either.
	if code, _, stderr := runDuctor(t, "doctor", "-c", o.config); strings.Contains(stderr, apiKey) {
		t.Errorf("the doctor, exit %d: %s", code, stderr)
	}
	o.say("/model codex")
	o.await("Codex")
	o.say(`[[start]] [[question "Which password?" secret=1 echo=1]] [[text " said."]]`)
	asked = o.awaitButton("✍ Own words…")
	o.pressOn(asked, "✍ Own words…")
	o.chat.Person().Send(o.chat, answer, telegram.ReplyTo(asked.ID))
	o.await("characters. " + secrets.Removed + " said.")
	checkNotShown(t, o.chat, answer[:8])
	checkNotStored(t, o.database(), answer)
}

// The chat shows output of a tool without terminal colours, and secrets are found even if colours interrupt them.
func TestColoursOfAToolAreNotShown(t *testing.T) {
	const key = "sk_live_zyxw9876543210"
	town := newTown(t, nil)
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, ".env"), []byte("STRIPE_SECRET_KEY="+key+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	town.say(`[[tool cmd="printf '\\033[1;31mred\\033[0m \\033]0;title\\007%%s\\033[32m%%s.' %s %s"]] [[text "done"]]`,
		key[:10], key[10:])
	town.awaitDone(1)
	town.press("🪜 Steps")
	town.await("1 step")
	town.press("1")
	town.await("red " + secrets.Removed + ".")
}

// An agent's output is on disk while its turn runs, readable for this user only. It is deleted when the turn is
// recorded, even if the agent lives on. If ductor is killed at that moment, the next process still gets the agent.
func TestRawOutputIsForgottenWithItsTurn(t *testing.T) {
	const key = "sk_live_zyxw9876543210"
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town := surroundings(t, nil)
			town.agent = agent
			dir := town.cfg.Projects.DefaultDir
			env := filepath.Join(dir, ".env")
			if err := os.WriteFile(env, []byte("STRIPE_SECRET_KEY="+key+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			o := town.ordeal(32)
			var pid int
			for turn := range 3 {
				o.say(
					`[[start]] [[text "my key: " file=%q]] [[tool cmd="cat .env; while [ ! -e go-%d ]; do sleep 0.05; done"]] [[text "the end of %d"]]`, env, turn, turn)
				o.awaitRaw("the turn runs", key, true)
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("go-%d", turn)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				o.await(fmt.Sprintf("the end of %d", turn))
				o.awaitRaw("the turn is recorded", key, false)
				run := o.idleAgent()
				if pid == 0 {
					pid = run.PID
				}
				if !run.Alive || run.PID != pid {
					t.Errorf("turn %d ran in the agent %d, the first in %d: %+v", turn, run.PID, pid, run)
				}
				if turn == 1 {
					o.daemon.kill()
					o.rise()
					pid = 0 // the agent has ended
				}
			}
			checkNotShown(t, o.chat, "lost")
		})
	}
}

// awaitRaw waits until a run's file contains a text, or until none does.
func (town *town) awaitRaw(when, text string, there bool) {
	town.t.Helper()
	var in []string
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if in = rawFilesWith(town.t, app.RunsPath(town.cfg), text); (len(in) > 0) == there {
			return
		}
	}
	town.t.Fatalf("when %s, the text is in %q", when, in)
}

// rawFilesWith returns the files below dir that contain a text. It fails if other users may read one.
func rawFilesWith(t testing.TB, dir, text string) (with []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // deleted, or unreadable
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			with = append(with, path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return with
}

// checkNotShown fails if the bot ever showed a text.
func checkNotShown(t *testing.T, chat *telegram.Chat, text string) {
	t.Helper()
	for _, m := range chat.View().FromBot() {
		for _, v := range m.Versions {
			if strings.Contains(v.Text, text) {
				t.Errorf("%q was shown in %q", text, v.Text)
			}
		}
	}
}

// checkNotStored fails if a table contains a text outside of the user's own messages.
func checkNotStored(t *testing.T, path, text string) {
	t.Helper()
	db := openDatabase(t, path)
	defer db.Close()
	columns, err := db.Query(
		`SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	var all [][2]string
	for columns.Next() {
		var c [2]string
		if err := columns.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		// The user's own text is stored unchanged.
		if c != [2]string{"turns", "prompt"} && c != [2]string{"sessions", "title"} &&
			c != [2]string{"turns_text", "prompt"} {
			all = append(all, c)
		}
	}
	for _, c := range all {
		var n int
		query := fmt.Sprintf(`SELECT count(*) FROM %q WHERE instr(CAST(%q AS TEXT), ?)`, c[0], c[1])
		if err := db.QueryRow(query, text).Scan(&n); err != nil || n > 0 {
			t.Errorf("%s.%s holds %q %d times: %v", c[0], c[1], text, n, err)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d columns were looked into", len(all))
	}
}

// ordealWithLog returns a daemon that logs into its state directory.
func (town *town) ordealWithLog() *ordeal {
	town.t.Helper()
	o := &ordeal{town: town, config: town.writeConfig(), again: map[telegram.MessageID]bool{}}
	text, err := os.ReadFile(o.config)
	if err == nil {
		file := filepath.Join(town.cfg.Storage.Dir, "ductor.log")
		text = bytes.Replace(text, []byte("[log]\n"), fmt.Appendf(nil, "[log]\nfile = %q\n", file), 1)
		err = errors.Join(os.MkdirAll(town.cfg.Storage.Dir, 0o700), os.WriteFile(o.config, text, 0o600))
	}
	if err != nil {
		town.t.Fatal(err)
	}
	o.rise()
	return o
}

// checkNotOnDisk fails if a file below dir contains a word.
func checkNotOnDisk(t *testing.T, dir, word string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // deleted, or unreadable
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		files++
		if at := bytes.Index(data, []byte(word)); at >= 0 {
			t.Errorf("%s holds the secret at %d: %q", path, at, data[max(at-40, 0):min(at+60, len(data))])
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Errorf("only %d files were read: %v", files, err)
	}
}

// A command that reads a daemon's database does not migrate it. The daemon's own migration makes a private copy
// without the text of messages.
func TestALookChangesNoDatabase(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	path := town.database()
	steps := olderDatabase(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := runDuctor(t, "doctor", "-c", config); !strings.Contains(stdout,
		"ok   storage: "+path+": of an earlier version") {
		t.Errorf("the doctor says %s", stdout)
	}
	if code, _, stderr := runDuctor(t, "audit", "-c", config); code == exitOK ||
		!strings.Contains(stderr, "the next start") {
		t.Errorf("the audit, exit %d, says %s", code, stderr)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("looking at the database changed it: %v", err)
	}
	o := town.ordeal(31)
	o.daemon.kill()
	backup := path + ".backup"
	info, err := os.Stat(backup)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v, %v", info, err)
	}
	if got := versionOf(t, backup); got != steps {
		t.Errorf("the copy has version %d, want %d", got, steps)
	}
	for file, word := range map[string]string{path: "handled-secret", backup: "-secret"} {
		if data, err := os.ReadFile(file); err != nil || bytes.Contains(data, []byte(word)) {
			t.Errorf("%s holds the text of a message: %v", file, err)
		}
	}
}

// olderDatabase creates a database of the version before ductor blanked the text of handled messages, and returns
// that version.
func olderDatabase(t *testing.T, path string) int {
	t.Helper()
	names, err := filepath.Glob("../../internal/store/sql/*.sql")
	slices.Sort(names)
	blanks := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "_inbox.sql") })
	if err != nil || blanks < 1 {
		t.Fatal(names, err)
	}
	names = names[:blanks]
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db := openDatabase(t, path)
	defer db.Close()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			_, err = db.Exec(string(text))
		}
		if err != nil {
			t.Fatal(name, err)
		}
	}
	version := len(names)
	_, err = db.Exec(`PRAGMA application_id = 0x64756374;
		INSERT INTO inbox (id, raw, received, handled) VALUES (1, CAST('a handled-secret' AS BLOB), 1, 1), (2, CAST('{"update_id":2,"x":"pending-secret"}' AS BLOB), 1, 0)`)
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func versionOf(t *testing.T, path string) (version int) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err == nil {
		defer db.Close()
		err = db.QueryRow("PRAGMA user_version").Scan(&version)
	}
	if err != nil {
		t.Fatal(err)
	}
	return version
}
