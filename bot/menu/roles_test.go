package menu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"ductor/bot/tgapi"
)

func TestRoleByCommand(t *testing.T) {
	tests := []struct {
		name  string
		roles []string
		args  string
		calls []string
		said  string
	}{
		{"a role", []string{"author", "reviewer"}, "reviewer", []string{`role 7/0 "reviewer"`}, "plays: reviewer (Claude · opus). It still knows what was said here; /new starts without that."},
		{"in another case", []string{"author", "reviewer"}, "Reviewer", []string{`role 7/0 "reviewer"`}, "plays: reviewer"},
		{"as it is written first", []string{"QA", "qa"}, "qa", []string{`role 7/0 "qa"`}, "plays: qa"},
		{"of two words", []string{"in doubt"}, "in doubt", []string{`role 7/0 "in doubt"`}, "plays: in doubt"},
		{"none", []string{"reviewer"}, "none", []string{`role 7/0 ""`}, "plays no role (Claude · opus)"},
		{"one that is called none", []string{"none"}, "none", []string{`role 7/0 "none"`}, "plays: none"},
		{"unknown", []string{"author", "reviewer"}, "plumber", nil, `There is no role "plumber". There are: none, author, reviewer.`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				r.service.roles = tt.roles
				r.command("/role " + tt.args)
				if calls := r.service.calls; !slices.Equal(calls, tt.calls) {
					t.Errorf("calls %q, want %q", calls, tt.calls)
				}
				if l := r.page; !strings.Contains(l.Text, tt.said) {
					t.Errorf("it says %q, want %q", l.Text, tt.said)
				}
			})
		})
	}
}

func TestTheRoleMenu(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.roles = []string{"author", "reviewer"}
		r.service.status.Role = "reviewer"
		r.command("/role")
		k := r.page.Keyboard
		if names := buttonNames(k); !slices.Equal(names, []string{"none", "author", "✓ reviewer", "Close"}) {
			t.Errorf("buttons %q", names)
		}
		r.press(k[0][0].Data)
		r.press(k[0][0].Data)
		if calls := r.service.calls; !slices.Equal(calls, []string{`role 7/0 ""`}) {
			t.Errorf("calls %q", calls)
		}
		if answers := r.answers; !slices.Equal(answers, []string{"Role: none", "This menu has expired; nothing changed. Send /role for a new one."}) {
			t.Errorf("answers %q", answers)
		}
		if e := r.edits[0]; e.Keyboard != nil || !strings.Contains(e.Text, "plays no role") {
			t.Errorf("the menu became %+v", e)
		}
	})
}

func TestClosingTheRoleMenuChangesNothing(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.roles = []string{"reviewer"}
		r.command("/role")
		k := r.page.Keyboard
		r.press(k[len(k)-1][0].Data)
		if calls := r.service.calls; len(calls) > 0 {
			t.Errorf("calls %q", calls)
		}
		if e := r.edits[0]; e.Text != "Nothing changed: role none" || e.Keyboard != nil {
			t.Errorf("the menu became %+v", e)
		}
	})
}

func TestTheRoleMenuOpensWhereTheRoleIs(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("role-%02d", i))
	}
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.roles, r.service.status.Role = names, "role-09"
		r.command("/role")
		if buttons := buttonNames(r.page.Keyboard); !slices.Contains(buttons, "✓ role-09") || !slices.Contains(buttons, "2 of 3") {
			t.Errorf("buttons %q", buttons)
		}
	})
}

// Whatever roles are called, each has a button that Telegram accepts on some page, and the button chooses it.
func TestEveryRoleCanBeChosen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := append([]string{""}, rapid.SliceOfNDistinct(rapid.StringN(1, 300, -1), 1, 40, rapid.ID).Draw(rt, "roles")...)
		m := &listMenu{frame: frame{action: RoleAction, nonce: strings.Repeat("A", nonceLength)}, of: roles{all: all}}
		m.now = rapid.SampledFrom(all).Draw(rt, "current")
		reached := make(map[string]bool)
		for m.page = range tgapi.Pages(len(all)) {
			page := m.view()
			if n := len(utf16.Encode([]rune(page.Text))); n > 4096 {
				rt.Fatalf("the text has %d units", n)
			}
			for _, row := range page.Keyboard {
				for _, b := range row {
					if len(b.Data) > tgapi.DataLimit || strings.TrimSpace(b.Text) == "" {
						rt.Fatalf("button %+v", b)
					}
					at := *m
					_, what, _ := strings.Cut(b.Data, ":")
					if _, _, op, ok := parseData(what); !ok {
						rt.Fatalf("data %q is not understood", b.Data)
					} else if at.press(op) == stateDone {
						reached[at.chosen] = true
					}
				}
			}
		}
		for _, name := range all {
			if !reached[name] {
				rt.Fatalf("role %q is on no page", name)
			}
		}
	})
}

func FuzzRoleMenuPresses(f *testing.F) {
	f.Add("n:0:k1")
	f.Add("n:0:p9")
	f.Add("::")
	f.Fuzz(func(t *testing.T, what string) {
		all := []string{"", "reviewer"}
		m := &listMenu{of: roles{all: all}}
		p := &permissionMenu{}
		if _, _, op, ok := parseData(what); ok {
			if m.press(op) == stateDone && !slices.Contains(all, m.chosen) {
				t.Errorf("chosen %q", m.chosen)
			}
			p.press(op)
			p.press(op)
		}
		m.view()
		p.view()
	})
}
