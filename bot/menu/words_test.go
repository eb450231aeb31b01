package menu

import (
	"slices"
	"strings"
	"testing"

	"ductor/orchestrator"
)

// A setting with words as values is set once, either by its command at once or by its menu.
func TestSettingsOfOneWord(t *testing.T) {
	for command, words := range map[string][]string{
		"/queue": {"queue", "steer", "interrupt"}, "/notify": {"always", "long", "never"}, "/think": {"on", "off"},
	} {
		t.Run(command, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				r.service.status.Settings = orchestrator.Settings{Busy: "queue", Notify: "always", Think: "on"}
				r.command(command + " " + strings.ToUpper(words[1]))
				if len(r.service.calls) != 1 || !strings.HasSuffix(r.service.calls[0], " 7/0 "+words[1]) || !strings.HasPrefix(r.page.Text, "Set") {
					t.Errorf("calls %q, and it says %q", r.service.calls, r.page.Text)
				}
				r.command(command + " plumber")
				r.command(command)
				want := append(slices.Clone(words), "Close")
				want[0] = "✓ " + want[0]
				if names := buttonNames(r.page.Keyboard); !slices.Equal(names, want) {
					t.Errorf("buttons %q", names)
				}
				r.press(r.page.Keyboard[1][0].Data)
				r.press(r.page.Keyboard[1][0].Data)
				if len(r.service.calls) != 2 || r.service.calls[1] != r.service.calls[0] {
					t.Errorf("calls %q", r.service.calls)
				}
			})
		})
	}
}
