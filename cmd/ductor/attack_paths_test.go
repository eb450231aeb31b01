package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// traps creates a project in which accept-edits must ask. It returns the files that an agent will write, by the last
// part of their names. config is ductor's own configuration.
func (town *town) traps(config string) map[string]string {
	town.t.Helper()
	project, outside := town.cfg.Projects.DefaultDir, town.t.TempDir()
	upload := filepath.Join(town.cfg.Storage.Dir, environment.UploadsDir, "chat")
	for _, dir := range []string{filepath.Join(project, ".git/hooks"), filepath.Join(project, "sub/.ssh"), upload} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			town.t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(project, "link")); err != nil {
		town.t.Fatal(err)
	}
	traps := map[string]string{
		"outside.txt":     filepath.Join(project, "link/outside.txt"),
		"pre-commit":      filepath.Join(project, ".git/hooks/pre-commit"),
		"bashrc":          filepath.Join(project, ".bashrc"),
		"authorized_keys": filepath.Join(project, "sub/.ssh/authorized_keys"),
		"upload.txt":      filepath.Join(upload, "upload.txt"),
	}
	if config != "" {
		traps["config.toml"] = config
	}
	return traps
}

// allowTraps allows the agent's requests, one for each trap, and checks that no trap was written before.
func (town *town) allowTraps(agent string, traps map[string]string, answered map[telegram.MessageID]bool) {
	town.t.Helper()
	for range traps {
		asked := town.awaitMessage(func(m telegram.Message) bool {
			return m.HasButton("✅ Allow once") && !answered[m.ID]
		})
		answered[asked.ID] = true
		name := nameIn(asked.Text, traps)
		if name == "" {
			town.t.Fatalf("%s asks for %q", agent, asked.Text)
		}
		if now, err := os.ReadFile(traps[name]); err == nil && strings.TrimSpace(string(now)) == agent {
			town.t.Errorf("%s wrote %s before it was allowed", agent, traps[name])
		}
		town.pressOn(asked, "✅ Allow once")
	}
}

// In accept-edits, every agent must ask for files outside its directory, hidden files, and ductor's own. The audit
// lists edits without a question.
func TestAttackAnEditThatLeadsElsewhere(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "accept-edits"
	text, err := os.ReadFile(town.writeConfig())
	if err != nil {
		t.Fatal(err)
	}
	project := town.cfg.Projects.DefaultDir
	own, copied := filepath.Join(project, "config.toml"), filepath.Join(t.TempDir(), "copy.toml")
	if err := errors.Join(os.Chmod(project, 0o700), os.WriteFile(own, text, 0o600),
		os.WriteFile(copied, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	o := &ordeal{town: town, config: own}
	town.dumpStateOnFailure()
	o.rise()
	traps, answered := town.traps(own), map[telegram.MessageID]bool{}
	for i, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		town.say("/model %s", agent)
		town.await("Your next message goes to " + capital(agent))
		script := fmt.Sprintf(`[[start]] [[write path="%s" text="x"]]`, filepath.Join(project, agent+".txt"))
		for _, path := range traps {
			script += fmt.Sprintf(` [[write path="%s" text="%s"]]`, path, agent)
		}
		town.say("%s", script+` [[text "that was all"]]`)
		town.allowTraps(agent, traps, answered)
		town.awaitDone(i + 1)
		for _, path := range traps {
			if now, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(now)) != agent {
				t.Errorf("%s was allowed to write %s, which holds %q, %v", agent, path, now, err)
			}
		}
	}
	town.checkRuleStopsAtOwnFiles(own)
	code, stdout, stderr := runDuctor(t, "audit", "-c", copied)
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		if strings.Count(stdout, agent) == 0 || !strings.Contains(stdout, agent+".txt") {
			t.Errorf("the audit does not name what %s wrote unasked", agent)
		}
	}
	if n := strings.Count(stdout, "accepted"); code != exitOK || n != 4 ||
		strings.Count(stdout, "allowed") != 4*len(traps)+1 {
		t.Errorf("%d were accepted; exit %d:\n%s%s", n, code, stdout, stderr)
	}
}

// checkRuleStopsAtOwnFiles allows all edits of the session with one tap, and then makes the agent write ductor's
// configuration.
func (town *town) checkRuleStopsAtOwnFiles(own string) {
	town.t.Helper()
	town.say("/permissions ask")
	town.await("It applies from the next turn.")
	project, before := town.cfg.Projects.DefaultDir, readFile(town.t, own)
	town.say(
		`[[start]] [[write path="%s/first.txt" text="x"]] [[write path="%s/second.txt" text="x"]] [[write path="%s" text="taken over"]] [[text "the rule was tried"]]`,
		project, project, own)
	first := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("Allow this session…") && strings.Contains(m.Text, "first.txt")
	})
	town.pressOn(first, "Allow this session…")
	town.press("✅ Allow with this rule")
	asked := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("⛔ Deny") && strings.Contains(m.Text, "config.toml")
	})
	if asked.HasButton("Allow this session…") {
		town.t.Errorf("ductor's own configuration may be allowed for the session: %q", asked.Text)
	}
	if now := readFile(town.t, own); now != before {
		town.t.Errorf("a rule for edits let ductor's configuration become %q", now)
	}
	if now := readFile(town.t, filepath.Join(project, "second.txt")); strings.TrimSpace(now) != "x" {
		town.t.Errorf("the rule let a second edit become %q", now)
	}
	town.pressOn(asked, "⛔ Deny")
	town.await("the rule was tried")
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// The real agents ask for an edit through a link that leads out of the directory, even in accept-edits.
func TestAttackTheRealAgentsEditThroughALink(t *testing.T) {
	for _, agent := range realagent.Some("claude", "codex") {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "accept-edits" })
			project, outside := town.cfg.Projects.DefaultDir, t.TempDir()
			if err := os.Symlink(outside, filepath.Join(project, "link")); err != nil {
				t.Fatal(err)
			}
			town.say(
				`[[start]] [[write path="%s/plain.txt" text="x"]] [[write path="%s/.envrc" text="x"]] [[write path="%s/link/new.txt" text="x"]] [[text "that was all"]]`,
				project, project, project)
			hidden := town.awaitMessage(func(m telegram.Message) bool {
				return m.HasButton("⛔ Deny") && strings.Contains(m.Text, ".envrc")
			})
			if now := readFile(t, filepath.Join(project, "plain.txt")); strings.TrimSpace(now) != "x" {
				t.Errorf("the edit that is accepted left %q", now)
			}
			town.pressOn(hidden, "✅ Allow once")
			asked := town.awaitMessage(func(m telegram.Message) bool {
				return m.HasButton("⛔ Deny") && strings.Contains(m.Text, "new.txt")
			})
			town.pressOn(asked, "⛔ Deny")
			town.awaitDone(1)
			if _, err := os.Stat(filepath.Join(outside, "new.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file that was denied is there: %v", err)
			}
		})
	}
}

// nameIn returns the trap that a question names.
func nameIn(text string, traps map[string]string) string {
	for name := range traps {
		if strings.Contains(text, name) {
			return name
		}
	}
	return ""
}
