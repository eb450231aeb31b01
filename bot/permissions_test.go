package bot

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"

	"pgregory.net/rapid"
)

func TestEveryPermissionModeIsExplained(t *testing.T) {
	for _, mode := range cli.PermissionModes() {
		if meaningOf(mode) == "" {
			t.Errorf("%s has no explanation", mode)
		}
	}
}

func TestPermissionsByCommand(t *testing.T) {
	tests := []struct {
		args string
		set  string // the mode that is set; empty for none
		said string
	}{
		{"plan", "plan", "plan: reads and plans, and changes nothing."},
		{"ask", "ask", "asked for here, with buttons"},
		{"accept-edits", "accept-edits", "accept-edits: edits in the working directory"},
		{"accept edits", "accept-edits", "from the next turn on"},
		{"acceptEdits", "accept-edits", "from the next turn on"},
		{"AUTO", "auto", "the agent's own judgement"},
		{"bypass", "", "Sure?"},
		{"bypass 30m", "", "for 30 min. Sure?"},
		{"bypass 2 hours", "", "for 2 h. Sure?"},
		{"bypass for ever", "", "Write how long it lasts"},
		{"bypass 25h", "", "a day at most"},
		{"bypass -1m", "", "Write how long it lasts"},
		{"everything", "", "There are: plan, ask, accept-edits, auto, bypass."},
		{"plan b", "", "no such permission mode"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.send(r.text("/permissions " + tt.args))
				synctest.Wait()
				var want []string
				if tt.set != "" {
					want = []string{"permission 7/0 " + tt.set}
				}
				if calls := r.desk.Calls(); !slices.Equal(calls, want) {
					t.Errorf("calls %q, want %q", calls, want)
				}
				if l := r.journal.lastLetter(t); !strings.Contains(l.Text, tt.said) {
					t.Errorf("letter %q, want %q", l.Text, tt.said)
				}
			})
		})
	}
}

// openPermissions opens the menu and gives its buttons.
func (r *inboundRig) openPermissions(t *testing.T) tgapi.Keyboard {
	t.Helper()
	r.send(r.text("/permissions"))
	synctest.Wait()
	return r.journal.lastLetter(t).Keyboard
}

func TestThePermissionMenu(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		k := r.openPermissions(t)
		if names := buttonNames(k); !slices.Equal(names, []string{"plan", "✓ ask", "accept-edits", "auto", "bypass", "Close"}) {
			t.Errorf("buttons %q", names)
		}
		text := r.journal.lastLetter(t).Text
		for _, mode := range cli.PermissionModes() {
			if !strings.Contains(text, "\n"+string(mode)+": "+meaningOf(mode)) {
				t.Errorf("%s is not explained in\n%s", mode, text)
			}
		}
		r.send(r.press(k[2][0].Data, 9))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"permission 7/0 accept-edits"}) {
			t.Errorf("calls %q", calls)
		}
		if got := r.voice.lastAnswer(); got != "Permissions: accept-edits" {
			t.Errorf("answer %q", got)
		}
		if e := r.voice.edits[len(r.voice.edits)-1]; e.Keyboard != nil || !strings.Contains(e.Text, "accept-edits: edits in") {
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
		{"yes", "Yes, bypass everything", []string{"bypass 7/0 1h0m0s"}, "bypass: everything goes through."},
		{"cancel", "Cancel", nil, "Nothing was changed: ask: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				k := r.openPermissions(t)
				r.send(r.press(k[4][0].Data, 9), r.press(k[4][0].Data, 9))
				synctest.Wait()
				if calls := r.desk.Calls(); len(calls) > 0 {
					t.Fatalf("one button, though pressed twice, did %q", calls)
				}
				if got := r.voice.lastAnswer(); got != menuMoved {
					t.Errorf("the second press of a button was answered with %q", got)
				}
				confirm := r.voice.edits[0].Keyboard
				if names := buttonNames(confirm); !slices.Equal(names, []string{"Yes, bypass everything", "Cancel"}) {
					t.Fatalf("buttons %q", names)
				}
				for _, row := range confirm {
					if row[0].Text == tt.button {
						r.send(r.press(row[0].Data, 9), r.press(row[0].Data, 9))
					}
				}
				synctest.Wait()
				if calls := r.desk.Calls(); !slices.Equal(calls, tt.calls) {
					t.Errorf("calls %q, want %q", calls, tt.calls)
				}
				if e := r.voice.edits[len(r.voice.edits)-1]; e.Keyboard != nil || !strings.Contains(e.Text, tt.said) {
					t.Errorf("the menu became %+v", e)
				}
				if got := r.voice.lastAnswer(); !strings.Contains(got, "Send /permissions for a new one") {
					t.Errorf("the press after the end was answered with %q", got)
				}
			})
		})
	}
}

// TestOldPressesOfPermissions holds that a button that is stale, foreign or made up changes nothing.
func TestOldPressesOfPermissions(t *testing.T) {
	tests := []struct {
		name   string
		press  func(r *inboundRig, k tgapi.Keyboard) map[string]any
		answer string
	}{
		{"expired", func(r *inboundRig, k tgapi.Keyboard) map[string]any {
			time.Sleep(menuLife)
			return r.press(k[2][0].Data, 9)
		}, "expired"},
		{"from another conversation", func(r *inboundRig, k tgapi.Keyboard) map[string]any {
			return r.pressIn(group, owner, k[2][0].Data)
		}, render.StaleButton},
		{"of a menu before a restart", func(r *inboundRig, _ tgapi.Keyboard) map[string]any { return r.press("p:AAAA:0:k2", 9) }, "expired"},
		{"as if it were the model menu's", func(r *inboundRig, k tgapi.Keyboard) map[string]any {
			return r.press("w"+strings.TrimPrefix(k[2][0].Data, "p"), 9)
		}, "Send /model"},
		{"a confirmation that was not offered", func(r *inboundRig, k tgapi.Keyboard) map[string]any {
			return r.press(strings.TrimSuffix(k[2][0].Data, "k2")+"y0", 9)
		}, ""},
		{"a mode that is not there", func(r *inboundRig, k tgapi.Keyboard) map[string]any {
			return r.press(strings.TrimSuffix(k[2][0].Data, "k2")+"k99", 9)
		}, ""},
		{"garbage", func(r *inboundRig, _ tgapi.Keyboard) map[string]any { return r.press("p:", 9) }, "expired"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.send(tt.press(r, r.openPermissions(t)))
				synctest.Wait()
				if got := r.voice.lastAnswer(); !strings.Contains(got, tt.answer) || tt.answer == "" && got != "" {
					t.Errorf("answer %q, want %q", got, tt.answer)
				}
				if calls := r.desk.Calls(); len(calls) > 0 {
					t.Errorf("something was changed: %q", calls)
				}
			})
		})
	}
}

// pressIn is a button pressed by a person in a group.
func (r *inboundRig) pressIn(chat, person int64, data string) map[string]any {
	p := r.press(data, 9)
	q := p["callback_query"].(map[string]any)
	q["from"] = map[string]any{"id": person, "first_name": "Bob"}
	q["message"].(map[string]any)["chat"] = map[string]any{"id": chat, "type": "supergroup"}
	return p
}

// TestAMemberMayNotLoosenPermissions holds that people who are let in only because they are in an allowed
// group cannot change what runs on the owner's machine, neither by command nor by button.
func TestAMemberMayNotLoosenPermissions(t *testing.T) {
	const member = 8
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.configure(func(o *updates.RouterOptions) { o.Allow.Members = updates.AllMembers })
		from := map[string]any{"from": map[string]any{"id": member, "first_name": "Bob"}}
		for _, command := range []string{"/permissions", "/permissions auto", "/permissions bypass"} {
			r.send(r.text(command, inGroup(), from))
			synctest.Wait()
			if l := r.journal.lastLetter(t); l.Text != updates.NotForMembers || l.Keyboard != nil {
				t.Errorf("%s by a member was answered with %+v", command, l)
			}
		}
		r.send(r.text("/permissions", inGroup()))
		synctest.Wait()
		auto := r.journal.lastLetter(t).Keyboard[3][0].Data
		r.send(r.pressIn(group, member, auto))
		synctest.Wait()
		if got := r.voice.lastAnswer(); got != updates.NotForMembers {
			t.Errorf("a member's press was answered with %q", got)
		}
		if calls := r.desk.Calls(); len(calls) > 0 {
			t.Fatalf("a member did %q", calls)
		}
		r.send(r.pressIn(group, owner, auto))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"permission -100/0 auto"}) {
			t.Errorf("the owner's press of the same button did %q", calls)
		}
	})
}

func TestAPermissionThatCannotBeStored(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		k := r.openPermissions(t)
		r.desk.fail = errors.New("disk full")
		r.send(r.press(k[0][0].Data, 9))
		synctest.Wait()
		if got := r.voice.lastAnswer(); !strings.Contains(got, "did not work") {
			t.Errorf("answer %q", got)
		}
		if e := r.voice.edits[len(r.voice.edits)-1]; !strings.Contains(e.Text, "nothing was changed") {
			t.Errorf("the menu became %+v", e)
		}
		r.send(r.text("/permissions plan"))
		synctest.Wait()
		if l := r.journal.lastLetter(t); !strings.Contains(l.Text, "nothing was changed") {
			t.Errorf("letter %q", l.Text)
		}
		r.desk.fail = nil
	})
}

// TestNoWalkLeadsToBypassUnconfirmed holds that whatever is pressed in whatever order, bypass is chosen
// only by the press after the one that asked for it.
func TestNoWalkLeadsToBypassUnconfirmed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &permissionMenu{current: rapid.SampledFrom(cli.PermissionModes()).Draw(rt, "current")}
		presses := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) menuOp {
			return menuOp{rapid.SampledFrom([]byte("kyxpb")).Draw(rt, "kind"), rapid.IntRange(-2, 6).Draw(rt, "arg")}
		})).Draw(rt, "presses")
		warned := false
		for _, op := range presses {
			text, _ := m.view()
			warned = strings.Contains(text, "Sure?")
			state := m.turn(op)
			if state == menuDone && m.chosen == cli.Bypass && (!warned || op.kind != 'y') {
				rt.Fatalf("bypass was chosen by %c%d", op.kind, op.arg)
			}
			if state == menuDone && !slices.Contains(cli.PermissionModes(), m.chosen) {
				rt.Fatalf("chosen %q", m.chosen)
			}
			if state != menuOpen {
				return
			}
		}
	})
}

func TestPermissionsAndRoleWaitForNoShutdownAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInboundRig(t)
		r.desk.roles = []string{"reviewer"}
		r.desk.fail = orchestrator.ErrShutdown
		r.send(r.text("/permissions plan"), r.text("/role reviewer"))
		synctest.Wait()
		if said := r.journal.said(); len(said) > 0 {
			t.Errorf("at the end of ductor it was said: %q", said)
		}
		if n := len(r.journal.Open()); n != 2 {
			t.Errorf("%d updates stay in the journal, want 2", n)
		}
		r.end()
	})
}
