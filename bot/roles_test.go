package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"ductor/bot/edits"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// TestAViewerChangesNothing: no button, command, prompt or edit of a viewer reaches the desk, whatever its data is, and
// the answer explains why.
func TestAViewerChangesNothing(t *testing.T) {
	const viewer = 8
	actions := rapid.SampledFrom([]string{
		actAgain, actFresh, actSummary, actCompact, actLater, actHandOff, actDrop, actNotAt, tgapi.LogInAction, actLift, actShow, actCancel, actStop, actSteer,
		actInterrupt, edits.ActionRestart, edits.ActionKeep, actLanguage, "m", "p", "a", "j", "f", "o", "unknown",
	})
	// not available in this rig
	absent := map[string]bool{"files": true, "get": true, "put": true, "consult": true, "group": true, "pair": true, "users": true, "doctor": true}
	var named []string
	for _, c := range allCommands(t) {
		if c.Right != "" && c.Right != orchestrator.Read && !absent[c.Name] {
			named = append(named, c.Name)
		}
	}
	from := map[string]any{"from": map[string]any{"id": viewer, "first_name": "Vera"}}
	refusal := (lang.Printer{}).Text("common.not-for-viewers")
	rapid.Check(t, func(rt *rapid.T) {
		data := actions.Draw(rt, "action") + ":" + rapid.StringMatching(`[a-z0-9:]{0,12}`).Draw(rt, "data")
		command := "/" + rapid.SampledFrom(named).Draw(rt, "command") + " " + rapid.StringMatching(`[a-z/]{0,8}`).Draw(rt, "words")
		prompt := rapid.SampledFrom([]string{"stop", "do it"}).Draw(rt, "prompt")
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.configure(func(o *updates.RouterOptions) {
				o.Allow.Users = orchestrator.Roster{owner: orchestrator.RoleOwner, viewer: orchestrator.RoleViewer}
				setPolicy(o, func(p *updates.Policy) {
					p.GroupTrigger, p.AbortWords = updates.TriggerAll, []string{"stop"}
				})
			})
			r.send(r.pressIn(group, viewer, data))
			synctest.Wait()
			if got := r.voice.lastAnswer(); got != refusal {
				t.Errorf("%q is answered with %q", data, got)
			}
			for _, text := range []string{command, "/abort", prompt} {
				r.send(r.text(text, inGroup(), from))
				synctest.Wait()
				if l := r.journal.lastNotice(t); l.Text != refusal {
					t.Errorf("%q is answered with %+v", text, l)
				}
			}
			if calls := r.desk.Calls(); len(calls) > 0 {
				t.Errorf("a viewer did %q by %q, %q, %q", calls, data, command, prompt)
			}
		})
	})
}

// TestAttackAMessageWithoutTheButton: no press of a user without the right to change settings edits a message that may
// not have the pressed button. A modified client can name any message and send any data.
func TestAttackAMessageWithoutTheButton(t *testing.T) {
	const member = 8
	turn := strings.Repeat("1", 36)
	for _, role := range append(orchestrator.UserRoles(), orchestrator.RoleMember) {
		for _, key := range []string{"approval/a", "card/" + turn + "/0", "queued/" + turn, "notice/x"} {
			for shown, fields := range shownWithoutButton() {
				inbound(t, func(t *testing.T, r *inboundRig) {
					if key != "approval/a" && role.May(orchestrator.ChangeSettings) {
						return
					}
					r.configure(func(o *updates.RouterOptions) {
						setPolicy(o, admitAll)
						if role != orchestrator.RoleMember {
							o.Allow.Users = orchestrator.Roster{member: role}
						}
					})
					if err := r.journal.SaveMessage(t.Context(), orchestrator.Message{
						Key: key, Turn: cli.TurnID(turn), Conversation: orchestrator.ConversationID{Chat: group},
						State: orchestrator.Sent, ID: 9,
					}); err != nil {
						t.Fatal(err)
					}
					r.answerEachPress()
					for action := range r.handlers.callbacks.buttons {
						for _, data := range []string{":" + turn, ":x:" + turn, ":l::n0 words", ":s9"} {
							before := len(r.voice.answers)
							r.send(r.pressIn(group, member, action+data, fields))
							synctest.Wait()
							if n := len(r.voice.answers) - before; n != 1 {
								t.Errorf("%s: %q has %d answers", role, action+data, n)
							}
						}
					}
					if edited := fmt.Sprint(r.voice.Signs(), r.voice.edits); edited != "[] []" {
						t.Errorf("a %s edited the message %s (%s): %s", role, key, shown, edited)
					}
				})
			}
		}
	}
}

// shownWithoutButton returns fields of a message in a press, for each way in which Telegram sends a message without the
// pressed button.
func shownWithoutButton() map[string]map[string]any {
	other := []map[string]any{{"text": "x", "callback_data": "other"}}
	return map[string]map[string]any{
		"unreadable":    {"date": 0, "reply_markup": nil},
		"no buttons":    {"reply_markup": nil},
		"other buttons": {"reply_markup": map[string]any{"inline_keyboard": []any{other}}},
	}
}

// answerEachPress replaces the handlers of all buttons by one that edits the message in every way.
func (r *inboundRig) answerEachPress() {
	for action, b := range r.handlers.callbacks.buttons {
		b.act = func(_ context.Context, p updates.Press, _ string) (tgapi.Answer, error) {
			r.desk.note("%s", "press "+p.Data)
			r.voice.Unbutton(p.By.Conversation, p.Editable)
			return tgapi.Answer{Edit: tgapi.Page{Text: "edited"}, Instead: &tgapi.Button{}}, nil
		}
		r.handlers.callbacks.buttons[action] = b
	}
}

// TestAButtonOfAMessageThatTheBotCannotRead: a button of each kind works below a message of which Telegram shows the
// bot no buttons, but only a message of the button's turn is edited. Other pages are new messages.
func TestAButtonOfAMessageThatTheBotCannotRead(t *testing.T) {
	const turn = "0197a3c0-0000-7000-8000-000000000001"
	offered := func(a orchestrator.Action) string { return turnButtons{}.choice(turn, a, orchestrator.Recovery{}).Data }
	for name, c := range map[string]struct {
		data, key string
		edits     bool
	}{
		"page of sessions":   {"S:o:0197a3c0:", "notice/x", false},
		"page of jobs":       {"j:o:chat/one:", "notice/x", false},
		"project":            {"G:o:abc", "notice/x", false},
		"Runs at":            {actNotAt + ":" + turn, "notice/x", false},
		"start over":         {edits.ActionRestart + ":" + turn, "notice/x", false},
		"keep running":       {edits.ActionKeep + ":" + turn, "notice/x", false},
		"account":            {offered(orchestrator.ActionAccount("claude/work")), "card/" + turn + "/0", true},
		"mode":               {offered(orchestrator.ActionMode(cli.Auto)), "card/" + turn + "/0", true},
		"run again":          {actAgain + ":" + turn, "card/" + turn + "/1", true},
		"cancel":             {actCancel + ":" + turn, "queued/" + turn, true},
		"transcript":         {"V:s500", "transcript/7/500", false},
		"consult":            {"Q:a:x1", "question/7/0/x1", false},
		"approval":           {"a:abc:nonce:d", "approval/abc", false},
		"changes":            {"U:u:" + turn, "notice/x", false},
		"card without a row": {actShow + ":" + turn, "", false},
		"card of another":    {actShow + ":" + turn, "card/other/0", false},
	} {
		for shown, fields := range shownWithoutButton() {
			inbound(t, func(t *testing.T, r *inboundRig) {
				if c.key != "" {
					if err := r.journal.SaveMessage(t.Context(), orchestrator.Message{
						Key: c.key, Turn: turn, Conversation: orchestrator.ConversationID{Chat: owner},
						State: orchestrator.Sent, ID: 9,
					}); err != nil {
						t.Fatal(err)
					}
				}
				r.answerEachPress()
				r.send(r.press(c.data, 9, fields))
				synctest.Wait()
				refused := shown == "other buttons"
				if did := len(r.desk.Calls()) == 1; did == refused {
					t.Errorf("%s, %s: did %q", name, shown, r.desk.Calls())
				}
				if edited := len(r.voice.Signs())+len(r.voice.edits) > 0; edited != (c.edits && !refused) {
					t.Errorf("%s, %s: %q, %v", name, shown, r.voice.Signs(), r.voice.edits)
				}
				posted := strings.Contains(strings.Join(r.journal.Said(), "\n"), "edited")
				if posted != (!c.edits && !refused) {
					t.Errorf("%s, %s: posts %q", name, shown, r.journal.Said())
				}
			})
		}
	}
}

// TestACronPageThatTheBotCannotRead: the pages of a job follow as new messages.
func TestACronPageThatTheBotCannotRead(t *testing.T) {
	withJobs(t, func(t *testing.T, r *inboundRig, _ *jobsFake) {
		r.send(r.text("/cron"))
		synctest.Wait()
		open := r.journal.lastNotice(t).Keyboard[0][0].Data
		r.send(r.press(open, 9, shownWithoutButton()["unreadable"]))
		synctest.Wait()
		page := r.journal.lastNotice(t)
		if !slices.Contains(buttonNames(page.Keyboard), "✏️ Edit") || len(r.voice.edits) > 0 {
			t.Errorf("the page is %+v, %v", page, r.voice.edits)
		}
	})
}

// TestEveryRoleMayWhatItsTableSays: a press passes the check exactly if the role has the right of its action.
func TestEveryRoleMayWhatItsTableSays(t *testing.T) {
	const user = 8
	for _, role := range append(orchestrator.UserRoles(), orchestrator.RoleMember) {
		for _, action := range []string{actCancel, actStop, actSteer, actInterrupt, actFresh, actShow} {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.configure(func(o *updates.RouterOptions) {
					setPolicy(o, admitAll)
					if role != orchestrator.RoleMember {
						o.Allow.Users = orchestrator.Roster{user: role}
					}
				})
				r.send(r.pressIn(group, user, action+":t1"))
				synctest.Wait()
				if did := len(r.desk.Calls()) > 0; did != role.May(r.handlers.callbacks.buttons[action].right) {
					t.Errorf("%s pressed %s: done is %v", role, action, did)
				}
			})
		}
	}
}

// leaving are users of whom one is removed at some time.
type leaving struct {
	orchestrator.Roster
	removed atomic.Int64
}

func (l *leaving) RoleOf(user orchestrator.PersonID) orchestrator.UserRole {
	if int64(user) == l.removed.Load() {
		return orchestrator.RoleNone
	}
	return l.Roster.RoleOf(user)
}

// TestARemovedUserGetsNothingThatWaits: a press and a command that wait for another command do nothing if that command
// removed their user.
func TestARemovedUserGetsNothingThatWaits(t *testing.T) {
	for name, removed := range map[string]int64{"stays": 0, "is removed": owner} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			users := &leaving{Roster: orchestrator.Roster{owner: orchestrator.RoleOwner}}
			r.configure(func(o *updates.RouterOptions) { o.Allow.Users = users })
			r.handlers.commands.screens.reload = func(context.Context, orchestrator.Press) string {
				users.removed.Store(removed)
				return "reloaded"
			}
			r.send(r.text("/reload"), r.press("x:y", 5), r.text("/new"))
			synctest.Wait()
			began, answered := strings.Contains(fmt.Sprint(r.desk.Calls()), "new "), r.voice.lastAnswer() != "(none)"
			if did := removed == 0; began != did || answered != did {
				t.Errorf("a user who %s: %q, %q", name, r.desk.Calls(), r.voice.lastAnswer())
			}
			if open := r.journal.Open(); len(open) > 0 {
				t.Errorf("a user who %s: updates %v stay open", name, open)
			}
		})
	}
}

// changing is a user whose role changes.
type changing struct{ role atomic.Value }

func (c *changing) RoleOf(orchestrator.PersonID) orchestrator.UserRole {
	return c.role.Load().(orchestrator.UserRole)
}

// TestWhatWaitsHasTheCurrentRole: a prompt that waits for its next part, and a command that waits for another command,
// count with the role that their user has when they are handled.
func TestWhatWaitsHasTheCurrentRole(t *testing.T) {
	long := strings.Repeat("a", 4090)
	for role, told := range map[orchestrator.UserRole]string{
		orchestrator.RoleUser: "", orchestrator.RoleViewer: "You may read this chat", orchestrator.RoleNone: "",
	} {
		for _, waits := range []string{long, "/new"} {
			inbound(t, func(t *testing.T, r *inboundRig) {
				user := &changing{}
				user.role.Store(orchestrator.RoleOwner)
				r.configure(func(o *updates.RouterOptions) { o.Allow.Users = user })
				change := func(context.Context, orchestrator.Press) string { user.role.Store(role); return "reloaded" }
				r.handlers.commands.screens.reload = change
				r.send(r.text("/reload"), r.text(waits))
				r.settle()
				did, said := len(r.desk.Calls())+len(r.desk.Texts()) > 0, strings.Join(r.journal.Said(), "\n")
				if did != (role == orchestrator.RoleUser) || !strings.Contains(said, told) {
					t.Errorf("%.5s of a %q: %q, %q", waits, role, r.desk.Calls(), said)
				}
				if open := r.journal.Open(); len(open) > 0 {
					t.Errorf("%.5s of a %q: updates %v stay open", waits, role, open)
				}
			})
		}
	}
}
