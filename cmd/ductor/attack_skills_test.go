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

const deploySkill = "---\ndescription: deploys\nallowed-tools: Bash(touch *)\n---\nState: !`touch ran-unasked`\n"

// skill writes the file of a skill, and returns its path.
func (town *town) skill(config, text string) string {
	town.t.Helper()
	path := filepath.Join(config, "skills", "deploy", "SKILL.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		town.t.Fatal(err)
	}
	return path
}

// The card of a skill shows its file, beginning with the commands that run at once. A skill without a file cannot be
// allowed.
func TestAttackASkillShowsWhatItDoes(t *testing.T) {
	a := startAttack(t, "")
	path := a.skill(filepath.Join(os.Getenv("HOME"), ".claude"), deploySkill)
	card := a.request("Skill", `{"skill":"deploy","args":"now"}`)
	a.check(hidingRequest{
		name: "a skill", first: []string{"!: touch ran-unasked"},
		shows: []string{path, "allowed-tools: Bash(touch *)", "State: !`touch ran-unasked`", "args: now"},
	}, card)
	a.pressOn(card, denial(card))
	a.awaitEnd("[denied]")

	a.skill(filepath.Join(os.Getenv("HOME"), ".claude"), "---\ndescription: deploys\n---\n"+strings.Repeat("word\n", 600)+"!`touch ran-unasked`")
	c := hidingRequest{name: "a long skill", first: []string{"!: touch ran-unasked"}, gate: gateUnread}
	card = a.request("Skill", `{"skill":"deploy"}`)
	a.check(c, card)
	a.decide(c, card)

	c = hidingRequest{name: "no file", shows: []string{"did not say where the skill's file is"}, gate: gateShut}
	card = a.request("Skill", `{"skill":"none"}`)
	a.check(c, card)
	a.decide(c, card)
}

// TestAttackTheRealClaudesSkill checks that the real Claude names skills as the test above assumes.
func TestAttackTheRealClaudesSkill(t *testing.T) {
	realagent.LongOnly(t)
	town, _ := realTown(t, "claude", func(c *config.Config) { c.Permissions.Mode = "ask" })
	path := town.skill(filepath.Join(os.Getenv("HOME"), ".claude"), deploySkill)
	town.say(`[[start]] [[call Skill args="{\"skill\":\"deploy\"}"]] [[text "that was all"]]`)
	card := town.awaitMessage(func(m telegram.Message) bool { return m.HasButton("⛔ Deny") })
	for _, part := range []string{"⚠️ !: touch ran-unasked", path, "allowed-tools: Bash(touch *)"} {
		if !strings.Contains(card.Text, part) {
			t.Errorf("the card does not show %q: %q", part, card.Text)
		}
	}
	ran := filepath.Join(town.cfg.Projects.DefaultDir, "ran-unasked")
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the skill ran before it was allowed: %v", err)
	}
	town.pressOn(card, "✅ Allow once")
	awaitFile(t, ran) // the skill ran the file that the card showed
}
