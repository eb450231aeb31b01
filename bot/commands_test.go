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
