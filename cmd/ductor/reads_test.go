package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// readable adds files to the project that may be read without asking, and others that may not.
func (town *town) readable() {
	town.t.Helper()
	outside, project := town.linked(), town.cfg.Projects.DefaultDir
	var errs []error
	for _, name := range []string{"e.txt", "sub/real.txt", ".env", "id_rsa"} {
		errs = append(errs, os.WriteFile(filepath.Join(project, name), []byte("a text\n"), 0o600))
	}
	errs = append(errs, os.Symlink(".env", filepath.Join(project, "plain.txt")),
		os.Symlink(filepath.Join(outside, "id_rsa"), filepath.Join(project, "notes.txt")))
	if err := errors.Join(errs...); err != nil {
		town.t.Fatal(err)
	}
}

// Reading commands run without asking, in ask and accept-edits. ductor asks about commands that read hidden files or
// secrets, leave the project by a path or a link, or do more than read.
func TestAttackReadingIsUnaskedAndNothingElse(t *testing.T) {
	a := startAttack(t, "codex")
	a.readable()
	project := a.cfg.Projects.DefaultDir
	const kind = "item/commandExecution/requestApproval"
	params := func(command, more string) string {
		line, err := json.Marshal("/bin/bash -lc '" + command + "'")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"kind":"command","command":%s,"cwd":%q%s}`, line, project, more)
	}
	reads := func() {
		t.Helper()
		script := `[[start]]`
		for _, c := range []string{"cat e.txt alias.txt", "sed -n 1,20p " + project + "/e.txt", "ls -la"} {
			script += fmt.Sprintf(` [[request %s params="%s"]]`, kind,
				strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(params(c, "")))
		}
		said := a.say("%s", script+` [[text "all was read"]]`)
		m := a.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && (m.HasButton("⛔ Deny") || strings.Contains(m.Text, "all was read"))
		})
		if m.HasButton("⛔ Deny") {
			t.Fatalf("a read is asked for: %q", m.Text)
		}
		a.awaitEnd("all was read")
	}
	reads()
	for _, asks := range []string{
		params("cat .env", ""), params("cat plain.txt", ""), params("cat notes.txt", ""), params("cat e.txt >out", ""),
		params("cat $(id)", ""),
		params("cat e.txt", `,"reason":"again without a sandbox"`), params("cat e.txt", `,"command":"cat e.txt"`),
	} {
		card := a.request(kind, asks)
		a.pressOn(card, denial(card))
		a.awaitEnd("[denied]")
	}
	a.say("/permissions accept-edits")
	a.await("accept-edits: ")
	reads()
}

// The real agents read without asking, with a tool and with a command.
func TestTheRealAgentsReadUnasked(t *testing.T) {
	realagent.LongOnly(t)
	for agent, reads := range map[string]string{
		"codex":    `[[tool cmd="cat e.txt"]] [[tool cmd="sed -n 1,20p e.txt"]]`,
		"copilot":  `[[tool cmd="cat e.txt"]] [[call view args="{\"path\":\"DIR/e.txt\"}"]] [[call view args="{\"path\":\"DIR\"}"]] [[call glob args="{\"pattern\":\"*\"}"]] [[call grep args="{\"pattern\":\"a\",\"path\":\"DIR/e.txt\"}"]]`,
		"cop":      `[[tool cmd="cat e.txt"]] [[call view args="{\"path\":\"DIR/e.txt\"}"]]`,
		"opencode": `[[tool cmd="cat e.txt"]] [[call read args="{\"filePath\":\"DIR/e.txt\"}"]]`,
	} {
		for _, mode := range []string{"ask", "accept-edits"} {
			t.Run(agent+" in "+mode, func(t *testing.T) {
				town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = cli.PermissionMode(mode) })
				town.readable()
				said := town.say("%s", `[[start]] `+strings.ReplaceAll(reads, "DIR", town.cfg.Projects.DefaultDir)+
					` [[text "all was read"]]`)
				m := town.awaitMessage(func(m telegram.Message) bool {
					return m.ID > said.ID && (m.HasButton("⛔ Deny") || strings.Contains(m.Text, "all was read"))
				})
				if m.HasButton("⛔ Deny") {
					t.Errorf("a read is asked for: %q", m.Text)
				}
			})
		}
	}
	for _, asks := range []string{
		`[[call view args="{\"path\":\"DIR/.env\"}"]]`, `[[call view args="{\"path\":\"DIR/plain.txt\"}"]]`,
		`[[call view args="{\"path\":\"DIR/notes.txt\"}"]]`,
		`[[call view args="{\"path\":\"/etc/hosts\"}"]]`, `[[call grep args="{\"pattern\":\"a\"}"]]`,
	} {
		t.Run(asks, func(t *testing.T) {
			town, _ := realTown(t, "copilot", func(c *config.Config) { c.Permissions.Mode = "accept-edits" })
			town.readable()
			town.say("%s", `[[start]] `+strings.ReplaceAll(asks, "DIR", town.cfg.Projects.DefaultDir)+
				` [[text "all was read"]]`)
			town.press("⛔ Deny")
		})
	}
}
