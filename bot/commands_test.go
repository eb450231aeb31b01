package bot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ductor/lang"
)

// Every command of the menu is in the page for users, and the README names no other.
func TestCommandsAreInThePages(t *testing.T) {
	var known []string
	page := read(t, "../docs/chat.md")
	for _, m := range commandMenu(lang.Printer{}) {
		known = append(known, m.Command)
		if !strings.Contains(page, "| `/"+m.Command+"`") {
			t.Errorf("docs/chat.md does not tell of /%s", m.Command)
		}
	}
	known = append(known, "start", "stop")
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
