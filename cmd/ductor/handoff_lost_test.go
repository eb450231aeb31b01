package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
)

// gatedAgent is a program whose failures the test controls with a file.
type gatedAgent struct{ gate, waits, args string }

// putGate wraps an agent's program. While the gate file contains "die", the program exits; with "hang", it waits. If
// the file contains a result of Claude, each prompt ends with that.
func putGate(t *testing.T, program *string) gatedAgent {
	t.Helper()
	dir := t.TempDir()
	g := gatedAgent{filepath.Join(dir, "gate"), filepath.Join(dir, "waits"), filepath.Join(dir, "args")}
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*stream-json*|*app-server*|*--acp*|exec*) ;;
*) exec %[3]s "$@";;
esac
echo "$*" >>%[4]s
case "$(cat %[1]s 2>/dev/null)" in
die) echo "panic: broken" >&2; exit 3;;
"{"*) while read -r line; do case "$line" in *'"type":"user"'*)
		echo '{"type":"system","subtype":"init","session_id":"5f0e6f0e-0000-4000-8000-000000000000","model":"m"}'
		cat %[1]s;;
	esac; done; exit 0;;
hang) : >%[2]s; while [ -e %[1]s ]; do sleep 0.02; done;;
esac
exec %[3]s "$@"
`, g.gate, g.waits, *program, g.args)
	*program = filepath.Join(dir, filepath.Base(*program))
	if err := os.WriteFile(*program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return g
}

// fail makes Claude report that each prompt failed, with a text and other fields.
func (g gatedAgent) fail(t *testing.T, text string, fields ...any) {
	t.Helper()
	result := map[string]any{"type": "result", "subtype": "success", "is_error": true, "result": text,
		"session_id": "5f0e6f0e-0000-4000-8000-000000000000"}
	for i := 0; i < len(fields); i += 2 {
		result[fields[i].(string)] = fields[i+1]
	}
	line, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	g.set(t, string(line)+"\n")
}

func (g gatedAgent) set(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(g.gate, []byte(what), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (g gatedAgent) open(t *testing.T) {
	t.Helper()
	if err := os.Remove(g.gate); err != nil {
		t.Fatal(err)
	}
}

// promptsOf returns the prompts that a scripted agent read, in order.
func promptsOf(t *testing.T, agent cli.Agent) (prompts []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(os.Getenv("HOME"), ".ductor-sim", string(agent)),
		func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				var entry struct{ Prompt string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					return err
				}
				prompts = append(prompts, entry.Prompt)
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return prompts
}

// If an agent fails at its start, or is stopped before it read the prompt, it received nothing. The chat does not
// claim a handoff, and its next prompt contains the missing turns.
func TestAHandOffIsNotLost(t *testing.T) {
	for agent, other := range map[cli.Agent]string{"claude": "codex", "codex": "claude", "gemini": "claude"} {
		t.Run(string(agent), func(t *testing.T) {
			var g gatedAgent
			town := newTown(t, func(c *config.Config) {
				c.Agents.Default, c.Agents.Fallback = agent, nil
				g = putGate(t, map[cli.Agent]*string{"claude": &c.Agents.Claude.Path, "codex": &c.Agents.Codex.Path, "gemini": &c.Agents.Gemini.Path}[agent])
			})
			town.say(`first [[start]][[text "the plan"]]`)
			town.awaitDone(1)
			town.say(`@%s second [[start]][[text "it is built"]]`, other)
			town.awaitDone(2)

			handed := "handed 1 turn to " + agent.Name()
			g.set(t, "die")
			town.say(`third [[start]][[text "it is merged"]]`)
			if m := town.await("ended unexpectedly"); strings.Contains(m.Text, "handed") {
				t.Errorf("an agent that did not start: %s", m.Text)
			}
			g.open(t)
			town.press("🔁 Run again")
			if m := town.awaitAnswer("it is merged"); !strings.Contains(m.Text, handed) {
				t.Errorf("it is run again: %s", m.Text)
			}
			again := promptsOf(t, agent)
			newest := again[len(again)-1]
			if len(again) != 2 || strings.Count(newest, "User: second") != 1 ||
				strings.Contains(newest, "User: third") {
				t.Errorf("it reads %q", again)
			}

			town.say(`@%s fourth [[start]][[text "it is tested"]]`, other)
			town.await("it is tested")
			g.set(t, "hang")
			stopped := town.say(`fifth [[start]][[text "never"]]`)
			awaitFile(t, g.waits)
			town.say("/abort")
			town.awaitAfter(stopped, "⏹")
			g.open(t)
			town.say(`sixth [[start]][[text "it is shipped"]]`)
			town.awaitAnswer("it is shipped")
			again = promptsOf(t, agent)
			newest = again[len(again)-1]
			if len(again) != 3 || strings.Count(newest, "User: fourth") != 1 ||
				!strings.Contains(newest, "The user stopped this turn") || strings.Contains(newest, "User: second") {
				t.Errorf("after an abort it reads %q", again)
			}
		})
	}
}

// A prompt that continues with another agent after a limit reaches it once, regardless of its length, and does not
// displace the history.
func TestAPromptIsNotHandedOverWithItself(t *testing.T) {
	var g gatedAgent
	town := newTown(t, func(c *config.Config) { g = putGate(t, &c.Agents.Claude.Path) })
	town.say(`@gemini first [[start]][[text "the plan"]]`)
	town.awaitDone(1)
	g.fail(t, "You've hit your limit", "api_error_status", 429)
	pasted := strings.Repeat("a line of the log\n", 200) // as long as one message of Telegram
	town.say(`second %s [[start]][[text "it is understood"]]`, pasted)
	town.await("reached its usage limit")
	town.press("🤝 Go on with Codex")
	m := town.awaitAnswer("it is understood") // the end of the turn is stored before the footer shows
	read := strings.Join(promptsOf(t, "codex"), "")
	if strings.Count(read, pasted) != 1 || strings.Count(read, "User: ") != 1 ||
		!strings.Contains(read, "User: first") {
		t.Errorf("Codex reads %q", read)
	}
	if !strings.Contains(m.Text, "handed 1 turn to Codex") || strings.Contains(m.Text, "left out") {
		t.Errorf("the card says %q", m.Text)
	}
}

// The chat names the part of the history that did not fit.
func TestTheChatNamesWhatABudgetLeftOut(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Sessions.HandoffTokens = 400 })
	town.say(`first [[text "the plan"]]`)
	town.awaitDone(1)
	town.say(`second [[text n=100 size=30]]`)
	town.awaitDone(2)
	town.say(`@codex third [[text "by the other"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "handed 1 turn to Codex") ||
		!strings.Contains(m.Text, "its middle is missing; 1 older turn left out") {
		t.Errorf("the card says %q", m.Text)
	}
}

// A role from a file is appended to Claude's own system prompt.
func TestARoleOfAFileAddsToThePrompt(t *testing.T) {
	var g gatedAgent
	town := newTown(t, func(c *config.Config) {
		dir := t.TempDir()
		c.File, c.Agents.Claude.Mode = filepath.Join(dir, "config.toml"), cli.OneShot
		if err := os.Mkdir(c.RolesDir(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.RolesDir(), "tester.md"), []byte("You test."), 0o600); err != nil {
			t.Fatal(err)
		}
		g = putGate(t, &c.Agents.Claude.Path)
	})
	town.say("/role tester")
	town.await("tester")
	town.say("hello")
	town.awaitDone(1)
	args, err := os.ReadFile(g.args)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(args), " --append-system-prompt") ||
		strings.Contains(string(args), " --system-prompt") {
		t.Errorf("Claude is started with %s", args)
	}
}
