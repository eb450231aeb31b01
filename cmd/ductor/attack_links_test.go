package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// linked adds links to the project, as a repository may contain them: docs leads out of it, alias.txt does not. It
// returns the target of docs.
func (town *town) linked() string {
	town.t.Helper()
	project := town.cfg.Projects.DefaultDir
	outside := filepath.Join(filepath.Dir(project), "home", ".ssh")
	if err := errors.Join(
		os.MkdirAll(outside, 0o700), os.MkdirAll(filepath.Join(project, "sub"), 0o700),
		os.Symlink("../home/.ssh", filepath.Join(project, "docs")),
		os.Symlink("sub/real.txt", filepath.Join(project, "alias.txt")),
	); err != nil {
		town.t.Fatal(err)
	}
	return outside
}

// The card of an edit through a link shows the target. If the target is outside the project, no mode and no rule
// allows the edit.
func TestAttackAnEditsCardShowsWhereALinkLeads(t *testing.T) {
	town := surroundings(t, nil)
	town.permission = "accept-edits"
	town.ordeal(31)
	outside := town.linked()
	for i, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		town.say("/model %s", agent)
		town.await("Your next message goes to " + capital(agent))
		project := town.cfg.Projects.DefaultDir
		town.say(`[[start]] [[write path="%s/docs/authorized_keys" text="key"]] [[text "that was all"]]`, project)
		town.denyOutside(filepath.Join(outside, "authorized_keys"))
		town.awaitDone(2*i + 1)

		town.say("/permissions ask")
		town.await("It applies from the next turn.")
		said := town.say(`[[start]] [[write path="%s/alias.txt" text="x"]] [[text "that was all"]]`, project)
		inside := town.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID && m.HasButton("⛔ Deny") })
		if !strings.Contains(inside.Text, "alias.txt leads to sub/real.txt.") || strings.Contains(inside.Text, "⚠️") ||
			!inside.HasButton("Allow this session…") {
			t.Errorf("%s: the card of a link within the project is %q with %v", agent, inside.Text, inside.Keyboard)
		}
		town.pressOn(inside, "⛔ Deny")
		town.awaitDone(2*i + 2)
		said = town.say("/permissions accept-edits")
		town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "accept-edits")
		})
	}
}

// denyOutside checks the card of an edit whose target, file, is outside the project, and denies it.
func (town *town) denyOutside(file string) {
	town.t.Helper()
	card := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("⛔ Deny") && strings.Contains(m.Text, "authorized_keys")
	})
	if want := "⚠️ docs/authorized_keys leads to " + file + ", outside of this folder."; !hasEntity(card, "bold",
		want) {
		town.t.Errorf("the card does not show %q: %q", want, card.Text)
	}
	if card.HasButton("Allow this session…") || card.HasButton("✅ Accept edits from now on") {
		town.t.Errorf("the card offers %v", card.Keyboard)
	}
	town.pressOn(card, "⛔ Deny")
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		town.t.Errorf("the file that was denied is there: %v", err)
	}
}

// If a path becomes a link while its card is open, the approval does not apply.
func TestAttackAPathThatBecomesALinkWhileItsCardIsOpen(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	outside, project := town.linked(), town.cfg.Projects.DefaultDir
	town.say(`[[start]] [[write path="%s/sub/authorized_keys" text="key"]] [[text "that was all"]]`, project)
	card := town.awaitMessage(func(m telegram.Message) bool { return m.HasButton("✅ Allow once") })
	if strings.Contains(card.Text, "leads to") {
		t.Fatalf("the card shows %q", card.Text)
	}
	if err := errors.Join(os.Remove(filepath.Join(project, "sub")),
		os.Symlink(outside, filepath.Join(project, "sub"))); err != nil {
		t.Fatal(err)
	}
	if a := town.pressOn(card, "✅ Allow once"); !strings.Contains(a.Text, "leads somewhere else") {
		t.Errorf("the press is answered with %q", a.Text)
	}
	town.pressOn(card, "⛔ Deny")
	town.awaitDone(1)
	if _, err := os.Lstat(filepath.Join(outside, "authorized_keys")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestAttackTheRealAgentsCardsShowWhereALinkLeads tests the same with the real agents. Gemini rejects such a path
// itself.
func TestAttackTheRealAgentsCardsShowWhereALinkLeads(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Permissions.Mode = "accept-edits" })
			outside := town.linked()
			town.say(`[[start]] [[write path="%s/docs/authorized_keys" text="key"]] [[text "that was all"]]`,
				town.cfg.Projects.DefaultDir)
			town.denyOutside(filepath.Join(outside, "authorized_keys"))
			town.awaitDone(1)
		})
	}
}

// A pattern for commands never allows a hidden file, a link to one, or a host.
func TestAttackAPatternTakesNoSecretAndNoHost(t *testing.T) {
	a := startAttack(t, "")
	outside, project := a.linked(), a.cfg.Projects.DefaultDir
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "id_rsa"), nil, 0o600),
		os.WriteFile(filepath.Join(project, ".env"), nil, 0o600),
		os.Symlink(".env", filepath.Join(project, "plain.txt")),
		os.Symlink(filepath.Join(outside, "id_rsa"), filepath.Join(project, "notes.txt")),
	); err != nil {
		t.Fatal(err)
	}
	for _, first := range []string{"rg text one.txt", "git fetch origin"} {
		a.pressOn(a.request("Bash", `{"command":"`+first+`"}`), "Allow pattern…")
		a.press("✅ Allow with this rule")
		a.awaitEnd("end")
	}
	for _, asks := range []string{
		"rg text .env", "rg text plain.txt", "rg text notes.txt", "rg text docs/id_rsa", "rg text id_rsa",
		"git fetch evil:path", "git fetch origin main:main",
	} {
		card := a.request("Bash", `{"command":"`+asks+`"}`)
		if strings.HasPrefix(asks, "rg text docs") &&
			!strings.Contains(card.Text, "⚠️ docs/id_rsa leads to "+outside+"/id_rsa") {
			t.Errorf("the card does not show where %s leads: %q", asks, card.Text)
		}
		a.pressOn(card, denial(card))
		a.awaitEnd("[denied]")
	}
	a.say(
		`[[start]] [[request Bash params="{\"command\":\"rg text sub/two.txt\"}"]] [[text "the pattern let it through"]]`)
	a.await("the pattern let it through")
}
