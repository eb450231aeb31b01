package menu

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"

	"pgregory.net/rapid"
)

func TestEveryPermissionModeIsExplained(t *testing.T) {
	for _, mode := range cli.PermissionModes() {
		if meaningOf(lang.Printer{}, mode) == "" {
			t.Errorf("%s has no explanation", mode)
		}
	}
}

func TestPermissionsByCommand(t *testing.T) {
	tests := []struct {
		args string
		set  string // empty for none
		said string
	}{
		{"plan", "plan", "plan: reads and plans, but changes nothing."},
		{"ask", "ask", "asks you before it writes"},
		{"accept-edits", "accept-edits", "accept-edits: edits files in its folder"},
		{"accept edits", "accept-edits", "from the next turn"},
		{"acceptEdits", "accept-edits", "from the next turn"},
		{"AUTO", "auto", "the agent asks only when it thinks something is risky"},
		{"bypass", "", "Sure?"},
		{"bypass 30m", "", "for 30 min. Sure?"},
		{"bypass 2 hours", "", "for 2 h. Sure?"},
		{"bypass for ever", "", "Say for how long"},
		{"bypass 25h", "", "A day is the longest"},
		{"bypass -1m", "", "Say for how long"},
		{"everything", "", "There are: plan, ask, accept-edits, auto, bypass."},
		{"plan b", "", "no such permission mode"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				r.command("/permissions " + tt.args)
				var want []string
				if tt.set != "" {
					want = []string{"permission 7/0 " + tt.set}
				}
				if calls := r.service.calls; !slices.Equal(calls, want) {
					t.Errorf("calls %q, want %q", calls, want)
				}
				if l := r.page; !strings.Contains(l.Text, tt.said) {
					t.Errorf("it says %q, want %q", l.Text, tt.said)
				}
			})
		})
	}
}

func TestThePermissionMenu(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		k := r.openPermissions()
		if names := buttonNames(k); !slices.Equal(names, []string{"plan", "✓ ask", "accept-edits", "auto", "bypass", "Tools…", "Close"}) {
			t.Errorf("buttons %q", names)
		}
		text := r.page.Text
		for _, mode := range cli.PermissionModes() {
			if !strings.Contains(text, "\n"+string(mode)+": "+meaningOf(lang.Printer{}, mode)) {
				t.Errorf("%s is not explained in\n%s", mode, text)
			}
		}
		r.press(k[2][0].Data)
		if calls := r.service.calls; !slices.Equal(calls, []string{"permission 7/0 accept-edits"}) {
			t.Errorf("calls %q", calls)
		}
		if got := r.answer(); got != "Permissions: accept-edits" {
			t.Errorf("answer %q", got)
		}
		if e := r.edit(); e.Keyboard != nil || !strings.Contains(e.Text, "accept-edits: edits files") {
			t.Errorf("the menu became %+v", e)
		}
	})
}

func TestBypassIsConfirmed(t *testing.T) {
	tests := []struct {
		name, button string
		calls        []string
		said         string
	}{
		{"yes", "Yes, bypass everything", []string{"bypass 7/0 1h0m0s"}, "bypass: never asks."},
		{"cancel", "✖ Cancel", nil, "Nothing changed: ask: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				k := r.openPermissions()
				r.press(k[4][0].Data)
				r.press(k[4][0].Data)
				if calls := r.service.calls; len(calls) > 0 {
					t.Fatalf("one button, though pressed twice, did %q", calls)
				}
				if got := r.answer(); got != (lang.Printer{}).Text("menu.moved-on") {
					t.Errorf("the second press of a button was answered with %q", got)
				}
				confirm := r.edits[0].Keyboard
				if names := buttonNames(confirm); !slices.Equal(names, []string{"Yes, bypass everything", "✖ Cancel"}) {
					t.Fatalf("buttons %q", names)
				}
				for _, row := range confirm {
					if row[0].Text == tt.button {
						r.press(row[0].Data)
						r.press(row[0].Data)
					}
				}
				if calls := r.service.calls; !slices.Equal(calls, tt.calls) {
					t.Errorf("calls %q, want %q", calls, tt.calls)
				}
				if e := r.edit(); e.Keyboard != nil || !strings.Contains(e.Text, tt.said) {
					t.Errorf("the menu became %+v", e)
				}
				if got := r.answer(); !strings.Contains(got, "Send /permissions for a new one") {
					t.Errorf("the press after the end was answered with %q", got)
				}
			})
		})
	}
}

// A stale, foreign or invented button changes nothing.
func TestOldPressesOfPermissions(t *testing.T) {
	tests := []struct {
		name   string
		press  func(r *rig, k tgapi.Keyboard)
		answer string
	}{
		{"expired", func(r *rig, k tgapi.Keyboard) {
			time.Sleep(life)
			r.press(k[2][0].Data)
		}, "expired"},
		{"from another conversation", func(r *rig, k tgapi.Keyboard) {
			r.pressIn(group, k[2][0].Data)
		}, lang.Printer{}.Text("common.stale-button")},
		{"of a menu before a restart", func(r *rig, _ tgapi.Keyboard) { r.press("p:AAAA:0:k2") }, "expired"},
		{"as if it were the model menu's", func(r *rig, k tgapi.Keyboard) {
			r.press("w" + strings.TrimPrefix(k[2][0].Data, "p"))
		}, "Send /model"},
		{"a confirmation that was not offered", func(r *rig, k tgapi.Keyboard) {
			r.press(strings.TrimSuffix(k[2][0].Data, "k2") + "y0")
		}, ""},
		{"a mode that is not there", func(r *rig, k tgapi.Keyboard) {
			r.press(strings.TrimSuffix(k[2][0].Data, "k2") + "k99")
		}, ""},
		{"garbage", func(r *rig, _ tgapi.Keyboard) { r.press("p:") }, "expired"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withMenus(t, func(t *testing.T, r *rig) {
				tt.press(r, r.openPermissions())
				if got := r.answer(); !strings.Contains(got, tt.answer) || tt.answer == "" && got != "" {
					t.Errorf("answer %q, want %q", got, tt.answer)
				}
				if calls := r.service.calls; len(calls) > 0 {
					t.Errorf("something was changed: %q", calls)
				}
			})
		})
	}
}

// Whatever buttons a user presses in whatever order, bypass starts only with the press right after the one that asked
// for it.
func TestNoWalkLeadsToBypassUnconfirmed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		service := &serviceFake{}
		now := orchestrator.Permissions{Mode: rapid.SampledFrom(cli.PermissionModes()).Draw(rt, "current")}
		m := &permissionMenu{service: service, now: now}
		presses := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) op {
			return op{rapid.SampledFrom([]byte("kyxpbt")).Draw(rt, "kind"), rapid.IntRange(-2, 6).Draw(rt, "arg")}
		})).Draw(rt, "presses")
		warned := false
		for _, op := range presses {
			text := m.view().Text
			warned = strings.Contains(text, "Sure?")
			state := m.press(op)
			if state == stateDone {
				if _, _, err := m.store(t.Context(), by(owner)); err != nil || len(service.calls) != 1 {
					rt.Fatalf("stored %q, %v", service.calls, err)
				}
				what, mode, _ := strings.Cut(service.calls[0], " 7/0 ")
				if what == "bypass" && (!warned || op.kind != 'y') {
					rt.Fatalf("bypass was chosen by %c%d", op.kind, op.arg)
				}
				if what == "permission" && (mode == string(cli.Bypass) ||
					!slices.Contains(cli.PermissionModes(), cli.PermissionMode(mode))) {
					rt.Fatalf("chosen %q", mode)
				}
			}
			if state != stateOpen {
				return
			}
		}
	})
}

// A chosen agent that does not run in the mode of the chat comes with the modes in which it runs.
func TestAnAgentThatDoesNotRunInTheModeComesWithOthers(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.entries, r.service.status.Permission = menuFixture(), cli.Ask
		r.service.refused = []cli.PermissionMode{cli.Ask}
		r.command("/model codex/gpt-03 high")
		const want = "goes to Codex · gpt-03 · high.\n\n⚠️ Now: ask. Codex can't work in this mode"
		k := r.page.Keyboard
		if !strings.Contains(r.page.Text, want) || strings.Count(r.page.Text, "can't work") != 1 ||
			len(k) == 0 || slices.Contains(buttonNames(k), "✓ ask") {
			t.Fatalf("it says %q, with %v", r.page.Text, k)
		}
		r.press(k[0][0].Data)
		done := []string{"model 7/0 codex/gpt-03 high", "permission 7/0 plan"}
		if calls := r.service.calls; !slices.Equal(calls, done) {
			t.Errorf("calls %q", calls)
		}
	})
}

// openPermissions opens the menu and returns its buttons.
func (r *rig) openPermissions() tgapi.Keyboard {
	r.command("/permissions")
	return r.page.Keyboard
}

// The menu names a mode's unsupported parts where the user chooses the mode, and again when it is set.
func TestThePermissionMenuSaysWhatTheAgentCannot(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		const why = "it has no plan mode: it may read, and change nothing"
		r.service.cannot = map[cli.PermissionMode]lang.Message{cli.Plan: lang.Words(why)}
		k := r.openPermissions()
		if text := r.page.Text; strings.Count(text, why) != 1 || !strings.Contains(text, meaningOf(lang.Printer{}, cli.Plan)+"\n  Here: "+why) {
			t.Errorf("the menu says\n%s", text)
		}
		r.press(k[0][0].Data)
		if e := r.edit(); !strings.Contains(e.Text, why) {
			t.Errorf("the menu became %+v", e)
		}
		r.command("/permissions ask")
		if text := r.page.Text; strings.Contains(text, why) {
			t.Errorf("of another mode it says %s", text)
		}
	})
}

// The menu has no button for a mode in which the agent runs no turn, and does not set it by name. It gives the reason.
func TestThePermissionMenuOmitsModesThatAreNotHeld(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		const why = "nothing makes this agent ask"
		r.service.cannot = map[cli.PermissionMode]lang.Message{
			cli.Ask: lang.Words(why), cli.Plan: lang.Words("it plans its own way"),
		}
		r.service.refused = []cli.PermissionMode{cli.Ask}
		k := r.openPermissions()
		text := r.page.Text
		if strings.Count(text, why) != 1 || k[0][0].Text != "plan" || k[1][0].Text != "accept-edits" {
			t.Errorf("the menu has %v and says\n%s", k, text)
		}
		r.command("/permissions ask")
		if text := r.page.Text; !strings.Contains(text, why) || strings.Contains(text, "next message") {
			t.Errorf("by name it says %s", text)
		}
		if len(r.service.calls) > 0 {
			t.Errorf("it was set: %v", r.service.calls)
		}
	})
}
