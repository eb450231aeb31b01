package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/sim/telegram"
)

// doctor --json lists every check, even for an invalid configuration, with a fix for each failed one.
func TestTheDoctorForPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("[telegram\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := runDuctor(t, "doctor", "--json", "-c", path)
	var got []map[string]string
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code == exitOK || len(got) != 1 {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	f := got[0]
	if f["name"] != "configuration" || f["state"] != "failed" || !strings.Contains(f["text"], path) || f["fix"] == "" ||
		len(f) != 4 {
		t.Errorf("it says %v", f)
	}
}

// TestTheDoctorInTheChat tests that an owner gets the findings in the private chat, in a message that is sent at
// once. Other users are rejected, and after a restart no message waits endlessly.
func TestTheDoctorInTheChat(t *testing.T) {
	town := surroundings(t, nil)
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := town.writeConfig()
	amend(t, path, fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d, %d]\nallowed_groups = [-5]", owner, neighbour))
	amend(t, path, fmt.Sprintf("path = %q", town.cfg.Agents.Codex.Path), `path = "/no/such/codex"`)
	d := startDaemon(t, "run", "-c", path)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	town.say("/doctor")
	report := town.await("checks passed.")
	if !slices.ContainsFunc(town.srv.Calls(), func(c telegram.Call) bool {
		return c.Method == "sendMessage" && strings.Contains(fmt.Sprint(c.Params), "Checking my setup…")
	}) {
		t.Error("nothing answered at once")
	}
	for _, want := range []string{"⚠️ agent codex: not found", "Fix: install it and log in to it"} {
		if !strings.Contains(report.Text, want) {
			t.Errorf("no %q in\n%s", want, report.Text)
		}
	}
	if n := len(town.chat.View().FromBot()); n != 1 || strings.Contains(report.Text, "❌") ||
		strings.Contains(report.Text, town.srv.Token()) {
		t.Errorf("%d messages; the last says\n%s", n, report.Text)
	}
	amend(t, path, "[stream]", "[straem]")
	town.say("/doctor")
	if report := town.await("❌ configuration:"); !strings.Contains(report.Text, "straem") ||
		!strings.Contains(report.Text, "/reload") {
		t.Errorf("about a mistake in the file it says\n%s", report.Text)
	}
	amend(t, path, "[straem]", "[stream]")
	other := town.srv.Private(neighbour, "Neighbour")
	other.Person().Send(other, "/doctor")
	if _, err := other.AwaitText(town.soon(), "Only the owner can do that."); err != nil {
		town.fatal(err)
	}
	group := town.srv.Group(-5, "Team")
	town.chat.Person().Send(group, "/doctor@ductor_bot")
	if _, err := group.AwaitText(town.soon(), "Send me this in our private chat"); err != nil {
		town.fatal(err)
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	d.exit(t)

	amend(t, path, `path = "/no/such/codex"`, fmt.Sprintf("path = %q", slow))
	d = startDaemon(t, "run", "-c", path)
	town.say("/doctor")
	town.await("Checking my setup…")
	town.say("/doctor")
	town.await("The checks are already running")
	d.kill()
	startDaemon(t, "run", "-c", path)
	town.await("ductor was restarted before the checks finished.")
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "Checking my setup…") {
			t.Error("a message waits for ever")
		}
	}
}

// TestTheDoctorLeavesTheDatabaseToDuctor tests that ductor keeps its locks after it examined its own database:
// another process that opens and closes the database neither deletes nor truncates its log, so a crash loses nothing.
func TestTheDoctorLeavesTheDatabaseToDuctor(t *testing.T) {
	town := surroundings(t, nil)
	path, database := town.writeConfig(), town.database()
	d := startDaemon(t, "run", "-c", path)
	town.say(`[[text "before"]]`)
	town.await("before")
	town.say("/doctor")
	town.await("checks passed.")
	for _, file := range []string{database, database + "-shm"} {
		var stat syscall.Stat_t
		if err := syscall.Stat(file, &stat); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a lock on "+file, func() bool { // a read of the list can miss a lock while others change
			locks, err := os.ReadFile("/proc/locks")
			return err == nil && strings.Contains(string(locks), fmt.Sprintf(":%d ", stat.Ino))
		})
	}
	log, err := os.Stat(database + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	runDuctor(t, "users", "list", "-c", path)
	if now, err := os.Stat(database + "-wal"); err != nil || !os.SameFile(log, now) {
		t.Errorf("the log is gone: %v", err)
	}
	town.say(`[[text "after"]]`)
	town.await("after")
	d.kill()
	startDaemon(t, "run", "-c", path)
	town.say(`[[text "after a crash"]]`)
	town.await("after a crash")
}
