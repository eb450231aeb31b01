package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
	"ductor/internal/terminal"
)

// A session that a user began in a terminal is listed and continued in the chat, and then in a terminal again, with
// each real agent. Each one knows the earlier conversation.
func TestRealAgentsMoveFromAndToATerminal(t *testing.T) {
	realagent.LongOnly(t)
	for agent, words := range realagent.SomeOf(map[string]struct {
		begin []string // arguments that start a session in a terminal; the prompt follows
		again func(line string) string
	}{
		"claude": {[]string{"-p"}, func(line string) string { return line + " -p" }},
		"codex": {[]string{"exec", "--skip-git-repo-check"}, func(line string) string {
			return strings.Replace(line, " resume ", " exec resume --skip-git-repo-check ", 1)
		}},
		"gemini": {[]string{"--skip-trust", "--prompt"}, func(line string) string {
			return line + " --skip-trust --prompt"
		}},
		"copilot": {[]string{"--prompt"}, func(line string) string { return line + " --prompt" }},
	}) {
		t.Run(agent, func(t *testing.T) {
			town, api := realSurroundings(t, agent, nil)
			terminal := func(name string, args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, name, args...)
				cmd.Dir, cmd.Stdin = town.cfg.Projects.DefaultDir, strings.NewReader("")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %q: %v\n%s", name, args, err, out)
				}
				return string(out)
			}
			path := map[string]string{
				"claude": town.cfg.Agents.Claude.Path, "codex": town.cfg.Agents.Codex.Path,
				"gemini": town.cfg.Agents.Gemini.Path, "copilot": town.cfg.Agents.Copilot.Path,
			}[agent]
			terminal(path, append(words.begin, `begun in a terminal [[text "noted"]]`)...)
			town.start()
			town.say("/sessions")
			town.await("There are no sessions here yet")
			town.press("💻 From the terminal")
			list := town.await("Terminal sessions")
			if !strings.Contains(list.Text, "“begun in a terminal") || !strings.Contains(list.Text, capital(agent)) {
				t.Errorf("the list is %q", list.Text)
			}
			town.press(list.Keyboard[0][0].Text)
			town.await("continues it with your next message")
			town.say(`continued in the chat [[start]] [[history]]`)
			if m := town.awaitDone(1); !strings.Contains(m.Text, "begun in a terminal") {
				t.Errorf("in the chat it knows %q", m.Text)
			}

			town.say("/terminal")
			_, line, _ := strings.Cut(town.await("write here again.").Text, "write here again.\n\n")
			before := len(api.Requests())
			terminal("sh", "-c", words.again(line)+` 'and in a terminal again [[start]] [[history]]'`)
			asked := ""
			for _, r := range api.Requests()[before:] {
				asked += string(r.Body)
			}
			for _, part := range []string{"begun in a terminal", "continued in the chat", "and in a terminal again"} {
				if !strings.Contains(asked, part) {
					t.Errorf("in the terminal it does not know %q", part)
				}
			}
			town.say("/sessions")
			town.await("1 message")
			town.press("💻 From the terminal")
			town.await("Your agents have no other sessions")
		})
	}
}

// Another agent that continues a terminal's session does not know its conversation, and the chat says so once.
func TestAnotherAgentIsNotToldOfTheTerminal(t *testing.T) {
	town := surroundings(t, nil)
	dir := town.cfg.Projects.DefaultDir
	kept := filepath.Join(os.Getenv("HOME"), ".claude", "projects",
		strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(dir))
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "8e3ffff2-cb0a-4ae2-a20a-982fd57eae5c"
	line := fmt.Sprintf(
		`{"type":"user","sessionId":%q,"cwd":%q,"message":{"role":"user","content":"begun in a terminal"}}`+"\n", id,
		dir)
	if err := os.WriteFile(filepath.Join(kept, id+".jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	town.start()
	town.say("/sessions")
	town.await("There are no sessions here yet")
	town.press("💻 From the terminal")
	town.press(town.await("Terminal sessions").Keyboard[0][0].Text)
	town.await("continues it with your next message")
	town.say("/model codex")
	town.await("Codex · its default model")
	town.say(`what did we say? [[text "I do not know"]]`)
	const untold = "only Claude knows what you and Claude said in the terminal"
	if m := town.awaitDone(1); !strings.Contains(m.Text, untold) {
		t.Errorf("the card says %q", m.Text)
	}
	town.say(`and now? [[text "as before"]]`)
	if m := town.awaitDone(2); strings.Contains(m.Text, untold) {
		t.Errorf("the next card says %q", m.Text)
	}
}

// If each session has its own home, the terminal's sessions are not offered, and /terminal names that home.
func TestSessionsWithHomesAndTheTerminal(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Sandbox.Home = docker.HomeSession })
	town.say("/sessions")
	town.await("There are no sessions here yet")
	town.press("💻 From the terminal")
	town.await("Each session has a home folder of its own here")
	town.say("/terminal")
	town.await("There is no session to continue yet")
	town.say(`first [[text "by the default"]]`)
	town.awaitDone(1)
	town.say("/terminal")
	if m := town.await("write here again."); !strings.Contains(m.Text, "env HOME=") ||
		!strings.Contains(m.Text, "--resume") {
		t.Errorf("it says %q", m.Text)
	}
}

// The command of the removed import of sessions names its replacement, also as the caption of a file.
func TestTheImportOfSessionsNamesItsReplacement(t *testing.T) {
	town := newTown(t, nil)
	town.answer("/sessions import", "/sessions import is gone")
	file := town.chat.Person().SendDocument(town.chat, telegram.File{Name: "session.json", Data: []byte("{}")},
		telegram.WithCaption("/sessions import"))
	town.awaitAfter(file, "/sessions import is gone")
}

// Without ductor's hooks, no agent would ask in the chat, and /terminal on says so.
func TestBeingAwayWithoutHooks(t *testing.T) {
	town := newTown(t, nil)
	for _, word := range []string{"on", "auto"} {
		town.answer("/terminal "+word, "Run ductor terminal install on the machine")
	}
	town.answer("/terminal off", "Agents in your terminals now ask there")
	town.sh(`mkdir -p ~/.claude`)
	if code, _, said := runDuctor(t, "terminal", "install", "--yes", "-c", town.writeConfig()); code != 0 {
		t.Fatal(said)
	}
	town.answer("/terminal on", "Agents in your terminals now ask and report here")
}

// asksInATerminal runs Claude's hook for a command, as Claude in a terminal does, and returns the hook's answer.
func (town *town) asksInATerminal(command string) (answer <-chan string) {
	town.t.Helper()
	cmd := exec.CommandContext(town.soon(), clitest.Program(town.t), terminal.Verb, "claude", terminal.StateFlag,
		town.cfg.Storage.Dir)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(
		`{"hook_event_name":"PermissionRequest","session_id":"s","cwd":%q,"tool_name":"Bash","tool_input":{"command":%q}}`,
		town.cfg.Projects.DefaultDir, command))
	said := make(chan string, 1)
	go func() {
		out, err := cmd.Output()
		said <- fmt.Sprint(string(out), err)
	}()
	return said
}

// An open question of an agent in a terminal survives a restart and a crash of ductor, and the answer reaches the
// terminal.
func TestAQuestionOfATerminalOutlivesDuctor(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	d := startDaemon(t, "run", "-c", config)
	town.sh(`mkdir -p ~/.claude`)
	if code, _, said := runDuctor(t, "terminal", "install", "--yes", "-c", config); code != 0 {
		t.Fatal(said)
	}
	town.answer("/terminal on", "Agents in your terminals now ask and report here")
	for _, tt := range []struct {
		command, button, answer string
		end                     func()
	}{
		{"touch killed.txt", "✅ Allow once", `"behavior":"allow"`, d.kill},
		{"touch restarted.txt", "⛔ Deny", `"behavior":"deny"`, func() {
			if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil || d.exit(t) != 0 {
				t.Errorf("ductor ends: %v", err)
			}
		}},
	} {
		answer := town.asksInATerminal(tt.command)
		card := town.await(tt.command)
		tt.end()
		d = startDaemon(t, "run", "-c", config)
		town.pressOn(card, tt.button)
		if got := <-answer; !strings.Contains(got, tt.answer) {
			t.Errorf("of %s the terminal reads %s", tt.command, got)
		}
	}
}
