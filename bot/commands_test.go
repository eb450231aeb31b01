package bot

import (
	"os"
	"strings"
	"testing"

	"ductor/lang"
)

// Every command of the menu is in the pages for users.
func TestCommandsAreInThePages(t *testing.T) {
	for _, page := range []string{"../README.md", "../docs/chat.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandMenu(lang.Printer{}) {
			if !strings.Contains(string(text), "| `/"+m.Command+"`") {
				t.Errorf("%s does not tell of /%s", page, m.Command)
			}
		}
	}
}
