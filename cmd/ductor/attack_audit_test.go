package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An attacker who controls a chat works in a mode without questions, and writes text that a terminal would display in
// reverse. The audit reports everything, in the table and in JSON.
func TestAttackWorkThatLeavesNoTrace(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "ask"
	o := town.ordeal(31)
	sub := filepath.Join(o.cfg.Projects.DefaultDir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	o.say("/permissions bypass")
	o.press("Yes, bypass everything")
	o.await("bypass: never asks")
	o.say("/cwd sub")
	o.await("From now on the agent works in")
	o.say("[[start]] [[tool cmd=\"touch quiet # \u2067hsab\u200B\"]] [[text \"it ran\"]]")
	o.awaitDone(1)
	o.say(`/cron every day at 8:30 [[text "a job"]]`)
	o.press("✅ Add")
	o.press("⏸ Pause")
	o.await("paused")
	o.say("/permissions ask")
	o.await("It applies from the next turn.")
	o.say(`[[start]] [[ask cmd="git status"]] [[text "asked once"]]`)
	o.press("Allow pattern…")
	o.press("✅ Allow with this rule")
	o.awaitDone(2)

	code, stdout, stderr := runDuctor(t, "audit", "--json", "-c", o.config)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var told []string
	for line := range strings.Lines(stdout) {
		var e struct {
			At, What, Tool, Title, Rule string
			By                          int64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.At == "" {
			t.Fatalf("%q: %v", line, err)
		}
		by := "nobody"
		if e.By == owner {
			by = "owner"
		}
		told = append(told, strings.TrimSpace(strings.Join([]string{e.What, "by", by, e.Tool, e.Title, e.Rule}, " ")))
	}
	for _, want := range []string{
		"mode by owner  bypass", "directory by owner  " + sub,
		"ran by nobody Bash touch quiet # \u2067hsab\u200B bypass", "job by owner added",
		"job by owner paused", "mode by owner  ask", "rule by owner Bash  Bash(git status *)",
		"allowed by owner Bash git status Bash(git status *)",
	} {
		if !slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("the audit does not tell %q, but\n%s", want, strings.Join(told, "\n"))
		}
	}
	_, table, _ := runDuctor(t, "audit", "-c", o.config)
	if text := stdout + table; strings.ContainsAny(text, "\u2067\u200B") ||
		strings.Count(text, `\u2067hsab\u200b`) != 2 {
		t.Errorf("what turns text round is not written out:\n%s", text)
	}
}
