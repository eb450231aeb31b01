package bot

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ductor/bot/menu"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

func menuFixture() []cli.MenuEntry {
	ok := cli.Auth{State: cli.Authenticated}
	return []cli.MenuEntry{
		{Agent: "claude", Auth: ok, Models: []cli.Model{{Agent: "claude", ID: "opus", Name: "Opus 4", Default: true, Efforts: []cli.Effort{"low", "high"}}}},
		{Agent: "codex", Auth: ok, Models: []cli.Model{{Agent: "codex", ID: "gpt"}}},
	}
}

func buttonNames(k tgapi.Keyboard) []string {
	var names []string
	for _, row := range k {
		for _, b := range row {
			names = append(names, b.Text)
		}
	}
	return names
}

// "/model" answers at once with the known models. The others come by an edit, and no prompt waits for them.
func TestTheModelMenuFillsIn(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.menu, r.desk.menuLoads = menuFixture(), make(chan struct{})
		r.send(r.text("/model"), r.text("a prompt"))
		synctest.Wait()
		l := r.journal.lastNotice(t)
		if names := buttonNames(l.Keyboard); !slices.Equal(names, []string{"✓ Claude", "Close"}) || !strings.Contains(l.Text, "Codex: loading models…") {
			t.Errorf("it shows %q with %q", l.Text, names)
		}
		if got := r.desk.Texts(); !slices.Equal(got, []string{"a prompt"}) {
			t.Errorf("the prompt waits: %q", got)
		}
		close(r.desk.menuLoads)
		synctest.Wait()
		if len(r.voice.edits) != 1 {
			t.Fatalf("edits %+v", r.voice.edits)
		}
		if names := buttonNames(r.voice.edits[0].Keyboard); !slices.Equal(names, []string{"✓ Claude", "Codex", "Close"}) || strings.Contains(r.voice.edits[0].Text, "looked up") {
			t.Errorf("it is filled in with %q, %q", r.voice.edits[0].Text, names)
		}
		r.send(r.press(r.voice.edits[0].Keyboard[1][0].Data, 9))
		synctest.Wait()
		if got := r.voice.edits[len(r.voice.edits)-1].Text; !strings.Contains(got, "Which model of Codex?") {
			t.Errorf("a press shows %q", got)
		}
	})
}

// pressIn returns a press by a user in a group.
func (r *inboundRig) pressIn(chat, person int64, data string, fields ...map[string]any) map[string]any {
	p := r.press(data, 9, fields...)
	q := p["callback_query"].(map[string]any)
	q["from"] = map[string]any{"id": person, "first_name": "Bob"}
	q["message"].(map[string]any)["chat"] = map[string]any{"id": chat, "type": "supergroup"}
	return p
}

// TestAMemberMayNotLoosenPermissions: users who are allowed only as members of a group cannot change the settings of
// work on the owner's machine, neither by command nor by button.
func TestAMemberMayNotLoosenPermissions(t *testing.T) {
	const member = 8
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.configure(func(o *updates.RouterOptions) {
			setPolicy(o, admitAll)
		})
		from := map[string]any{"from": map[string]any{"id": member, "first_name": "Bob"}}
		for _, command := range []string{"/permissions", "/permissions auto", "/permissions bypass"} {
			r.send(r.text(command, inGroup(), from))
			synctest.Wait()
			if l := r.journal.lastNotice(t); l.Text != (lang.Printer{}).Text("common.not-for-members") || l.Keyboard != nil {
				t.Errorf("%s by a member was answered with %+v", command, l)
			}
		}
		r.send(r.text("/permissions", inGroup()))
		synctest.Wait()
		auto := r.journal.lastNotice(t).Keyboard[3][0].Data
		r.send(r.pressIn(group, member, auto))
		synctest.Wait()
		if got := r.voice.lastAnswer(); got != (lang.Printer{}).Text("common.not-for-members") {
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
		if got := r.voice.lastAnswer(); !strings.Contains(got, "didn't work") {
			t.Errorf("answer %q", got)
		}
		if e := r.voice.edits[len(r.voice.edits)-1]; !strings.Contains(e.Text, "nothing changed") {
			t.Errorf("the menu became %+v", e)
		}
		r.send(r.text("/permissions plan"))
		synctest.Wait()
		if l := r.journal.lastNotice(t); !strings.Contains(l.Text, "nothing changed") {
			t.Errorf("notice %q", l.Text)
		}
		r.desk.fail = nil
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

// openPermissions opens the menu and returns its buttons.
func (r *inboundRig) openPermissions(t *testing.T) tgapi.Keyboard {
	t.Helper()
	r.send(r.text("/permissions"))
	synctest.Wait()
	return r.journal.lastNotice(t).Keyboard
}

// TestAMenuOfBeforeARestart: it loses its buttons when one is pressed.
func TestAMenuOfBeforeARestart(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.press(menu.RoleAction+":AAAA:0:k1", 9))
		synctest.Wait()
		if signs := r.voice.Signs(); !strings.Contains(r.voice.lastAnswer(), "Send /role for a new one.") || !slices.Contains(signs, "unbutton 7/0 9") {
			t.Errorf("answer %q, signs %q", r.voice.lastAnswer(), signs)
		}
	})
}

// TestCancelLeavesTheButtonsOfTheEnd: if a user ends a turn's retries, or the turn has just ended, its final buttons
// may be shown already.
func TestCancelLeavesTheButtonsOfTheEnd(t *testing.T) {
	for shown, unbuttons := range map[cli.TurnID]bool{"": true, "t1": false} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.desk.shown = shown
			r.send(r.press(actDrop+":t1", 9))
			synctest.Wait()
			if got := slices.Contains(r.voice.Signs(), "unbutton 7/0 9"); got != unbuttons {
				t.Errorf("shown by %q: the signs are %q", shown, r.voice.Signs())
			}
		})
	}
}

// TestARunAtALaterTimeShowsInTheChat: the press sends a message with Cancel, which then offers to run the prompt now.
func TestARunAtALaterTimeShowsInTheChat(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.press(actLater+":t1", 9))
		synctest.Wait()
		sent := r.journal.lastNotice(t)
		if !strings.HasPrefix(sent.Text, "⏰ It runs at ") || sent.ReplyTo != 9 || len(sent.Keyboard) != 1 {
			t.Fatalf("the chat shows %+v", sent)
		}
		r.send(r.press(sent.Keyboard[0][0].Data, 10))
		synctest.Wait()
		if len(r.voice.edits) != 1 || r.voice.edits[0].Text != "Cancelled." ||
			r.voice.edits[0].Keyboard[0][0].Data != actAgain+":t1" {
			t.Errorf("after Cancel the message is %+v", r.voice.edits)
		}
		r.desk.fail = orchestrator.ErrRepeated
		r.send(r.press(sent.Keyboard[0][0].Data, 10))
		synctest.Wait()
		if len(r.voice.edits) != 1 || r.voice.lastAnswer() != "This was already run again." ||
			!slices.Contains(r.voice.Signs(), "unbutton 7/0 10") {
			t.Errorf("after the run, Cancel is answered by %q, and changes %+v", r.voice.lastAnswer(), r.voice.edits)
		}
	})
}
