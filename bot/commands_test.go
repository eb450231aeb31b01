package bot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ductor/bot/updates"
)

// The page for users has every command of the menu, and the README has no others.
func TestCommandsAreInThePages(t *testing.T) {
	var known []string
	page := read(t, "../docs/chat.md")
	for _, c := range allCommands(t) {
		known = append(append(known, c.Name), c.Aliases...)
		if c.Help != "" && !strings.Contains(page, "| `/"+c.Name+"`") {
			t.Errorf("docs/chat.md does not describe /%s", c.Name)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `/([a-z]+)").FindAllStringSubmatch(read(t, "../README.md"), -1) {
		if !slices.Contains(known, row[1]) {
			t.Errorf("the README tells of /%s, which there is not", row[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// allCommands returns the table of commands, including those that are absent in the test's bot.
func allCommands(t *testing.T) (table []updates.CommandSpec) {
	inbound(t, func(_ *testing.T, r *inboundRig) { table = r.handlers.commands.table })
	return table
}

// A suggestion for a command of another program is a command of ductor, and does what the other one does.
func TestCommandsOfOtherProgramsNameOursForTheSamePurpose(t *testing.T) {
	var names []string
	for _, spec := range allCommands(t) {
		names = append(names, spec.Name)
	}
	for foreign, ours := range foreignCommands() {
		if ours != "" && !slices.Contains(names, ours) || slices.Contains(names, foreign) {
			t.Errorf("/%s suggests /%s", foreign, ours)
		}
	}
}

func TestAnUnknownCommandIsAnsweredWithWhatReplacesIt(t *testing.T) {
	for command, want := range map[string]string{
		"reset": "Did you mean /new?", "plan": "Did you mean /permissions?", "push": "I don't know /push; /help",
		"config": "I don't know /config; /help lists all commands.",
		"export": "open it in /sessions", "login": "pick it in /model",
	} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.send(r.text("/" + command))
			r.settle()
			if said := r.journal.said(); len(said) != 1 || !strings.Contains(said[0], want) {
				t.Errorf("/%s is answered with %q", command, said)
			}
		})
	}
}
