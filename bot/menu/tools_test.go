package menu

import (
	"slices"
	"strings"
	"testing"
)

func TestToolsByCommand(t *testing.T) {
	for text, want := range map[string]string{
		"no shell mcp:github": `tools 7/0 only [] never ["shell" "mcp:github"]`,
		"only read search":    `tools 7/0 only ["read" "search"] never []`,
		"all":                 `tools 7/0 only [] never []`,
		"no":                  "",
		"perhaps shell":       "",
	} {
		withMenus(t, func(t *testing.T, r *rig) {
			r.command("/permissions tools " + text)
			if got := strings.Join(r.service.calls, ""); got != want {
				t.Errorf("%s: %q", text, got)
			}
			if said := strings.HasPrefix(r.page.Text, "Set."); said != (want != "") {
				t.Errorf("%s: it says %s", text, r.page.Text)
			}
		})
	}
}

func TestToolsInTheMenu(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		k := r.openPermissions()
		r.press(k[5][0].Data)
		page := r.edit()
		for _, want := range []string{"Tools of this chat: all.", "The configuration says: never web.", "Codex doesn't start with that: it edits"} {
			if !strings.Contains(page.Text, want) {
				t.Errorf("the page lacks %q:\n%s", want, page.Text)
			}
		}
		if names := buttonNames(page.Keyboard); names[0] != "🚫 Deny shell" || slices.Contains(names, "Permit all tools") {
			t.Errorf("buttons %q", names)
		}
		r.press(page.Keyboard[0][0].Data)
		if text := r.edit().Text; !strings.Contains(text, "Tools of this chat: never shell.") {
			t.Errorf("it says %s", text)
		}
		r.press(r.openPermissions()[5][0].Data)
		page = r.edit()
		if names := buttonNames(page.Keyboard); names[0] != "✅ Permit shell" || names[5] != "Permit all tools" {
			t.Errorf("buttons %q", names)
		}
		r.press(page.Keyboard[0][0].Data)
		if want := []string{`tools 7/0 only [] never ["shell"]`, "tools 7/0 only [] never []"}; !slices.Equal(r.service.calls, want) {
			t.Errorf("calls %q", r.service.calls)
		}
	})
}
