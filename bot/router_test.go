package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// inbound runs a test of the inbound side under a fake clock and checks that no update stays open.
func inbound(t *testing.T, test func(t *testing.T, r *inboundRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newInboundRig(t)
		test(t, r)
		synctest.Wait()
		r.end()
		if open := r.journal.Open(); len(open) > 0 {
			t.Errorf("updates %v were not finished", open)
		}
	})
}

func respondToAll(o *updates.RouterOptions) {
	setPolicy(o, func(p *updates.Policy) { p.GroupTrigger = updates.TriggerAll })
}

func always(p updates.Policy) func() updates.Policy { return func() updates.Policy { return p } }

// setPolicy changes the policy of a router.
func setPolicy(o *updates.RouterOptions, change func(*updates.Policy)) {
	p := o.Allow.Policy()
	change(&p)
	o.Allow.Policy = always(p)
}

// admitAll lets all members of groups speak.
func admitAll(p *updates.Policy) { p.GroupMembers = updates.AllMembers }

func TestPromptIsSubmittedWithItsUpdate(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text("fix the tests"))
		synctest.Wait()
		want := orchestrator.Prompt{
			Conversation: orchestrator.ConversationID{Chat: owner}, Person: owner, Text: "fix the tests", Message: 501, Updates: []int64{101},
		}
		if len(r.desk.prompts) != 1 || !equalPrompts(r.desk.prompts[0], want) {
			t.Fatalf("prompts %+v, want %+v", r.desk.prompts, want)
		}
		if signs := r.voice.Signs(); !slices.Equal(signs, []string{"react 7/0 501 👀"}) {
			t.Errorf("the receipt is a reaction, got %q", signs)
		}
	})
}

func equalPrompts(a, b orchestrator.Prompt) bool {
	return a.Conversation == b.Conversation && a.Person == b.Person && a.Text == b.Text && a.Message == b.Message &&
		slices.Equal(a.Updates, b.Updates) && slices.Equal(a.Attachments, b.Attachments)
}

func TestWhatBecomesOfMessages(t *testing.T) {
	none := []string(nil)
	tests := []struct {
		name   string
		update func(r *inboundRig) map[string]any
		set    func(r *inboundRig)
		prompt []string
		calls  []string
		said   string // part of the last notice; empty for no notice
	}{
		{name: "stranger", update: func(r *inboundRig) map[string]any {
			return r.text("hi", map[string]any{"from": map[string]any{"id": 66}, "chat": map[string]any{"id": 66, "type": "private"}})
		}},
		{name: "stranger's command", update: func(r *inboundRig) map[string]any {
			return r.text("/abort", map[string]any{"from": map[string]any{"id": 66}, "chat": map[string]any{"id": 66, "type": "private"}})
		}},
		{name: "stranger's button", update: func(r *inboundRig) map[string]any {
			p := r.press("r:turn-1", 5)
			p["callback_query"].(map[string]any)["from"] = map[string]any{"id": 66}
			return p
		}},
		{name: "stranger's edit", update: func(r *inboundRig) map[string]any {
			m := r.text("hi", map[string]any{"from": map[string]any{"id": 66}, "chat": map[string]any{"id": 66, "type": "private"}})
			return map[string]any{"edited_message": m["message"]}
		}},
		{name: "channel post", update: func(r *inboundRig) map[string]any {
			return map[string]any{"channel_post": map[string]any{"message_id": 1, "text": "x"}}
		}},
		{name: "joined", update: func(r *inboundRig) map[string]any {
			return r.text("", map[string]any{"text": nil, "new_chat_members": []any{}})
		}},
		{name: "sticker", update: func(r *inboundRig) map[string]any {
			return r.text("", map[string]any{"text": nil, "sticker": map[string]any{"file_id": "s"}})
		}, said: "can't read stickers"},
		{name: "sticker in a group, not meant for us", update: func(r *inboundRig) map[string]any {
			return r.text("", inGroup(), map[string]any{"text": nil, "sticker": map[string]any{}})
		}},
		{name: "talk in a group", update: func(r *inboundRig) map[string]any { return r.text("hello all", inGroup()) }},
		{name: "talk in a group where all counts", update: func(r *inboundRig) map[string]any { return r.text("hello all", inGroup()) },
			set: func(r *inboundRig) { r.configure(respondToAll) }, prompt: []string{"hello all"}},
		{name: "mention in a group", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot fix it", inGroup(), map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}})
		}, prompt: []string{"fix it"}},
		{name: "mention of nothing", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot", inGroup(), map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}})
		}, said: "no text in this message"},
		{name: "mention below a message that says it all", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot", inGroup(), map[string]any{
				"entities":         []any{map[string]any{"type": "mention", "offset": 0, "length": 11}},
				"reply_to_message": map[string]any{"message_id": 2, "from": map[string]any{"id": 5, "first_name": "Bob"}, "text": "it is broken"},
			})
		}, prompt: []string{"[In reply to \"Bob\"]\n> it is broken\n\n"}},
		{name: "abort word in a group is no abort", update: func(r *inboundRig) map[string]any { return r.text("stop", inGroup()) },
			set: func(r *inboundRig) {
				r.configure(respondToAll)
				r.desk.running = true
			}, prompt: []string{"stop"}},
		{name: "abort word while something runs", update: func(r *inboundRig) map[string]any { return r.text("Stop!") },
			set: func(r *inboundRig) { r.desk.running = true }, calls: []string{"abort 7/0"}, said: "Stopped."},
		{name: "abort word while a turn waits", update: func(r *inboundRig) map[string]any { return r.text("stop") },
			set: func(r *inboundRig) { r.desk.queued = map[cli.TurnID]bool{"t": true} }, calls: []string{"abort 7/0"}, said: "Nothing is running"},
		{name: "abort word while nothing runs", update: func(r *inboundRig) map[string]any { return r.text("wait") }, prompt: []string{"wait"}},
		{name: "forwarded abort word", update: func(r *inboundRig) map[string]any {
			return r.text("stop", map[string]any{"forward_origin": map[string]any{"type": "hidden_user", "sender_user_name": "Eve"}})
		}, set: func(r *inboundRig) { r.desk.running = true }, prompt: []string{"[Forwarded from \"Eve\", not by the user]\n> stop"}},
		{name: "forwarded command", update: func(r *inboundRig) map[string]any {
			return r.text("/abort", map[string]any{"forward_origin": map[string]any{"type": "hidden_user", "sender_user_name": "Eve"}})
		}, prompt: []string{"[Forwarded from \"Eve\", not by the user]\n> /abort"}},
		{name: "command that a bot wrote", update: func(r *inboundRig) map[string]any {
			return r.text("/abort", map[string]any{"via_bot": map[string]any{"is_bot": true, "username": "evil_bot"}})
		}, prompt: []string{"[Written by the bot \"evil_bot\", not by the user]\n> /abort"}},
		{name: "abort", update: func(r *inboundRig) map[string]any { return r.text("/abort") }, calls: []string{"abort 7/0"}, said: "Nothing is running"},
		{name: "stop is abort", update: func(r *inboundRig) map[string]any { return r.text("/stop") },
			set: func(r *inboundRig) { r.desk.running = true }, calls: []string{"abort 7/0"}, said: "Stopped."},
		{name: "stop by name in a group", update: func(r *inboundRig) map[string]any { return r.text("/stop@ductor_bot", inGroup()) },
			calls: []string{"abort -100/0"}, said: "Nothing is running"},
		{name: "stop for another bot", update: func(r *inboundRig) map[string]any { return r.text("/stop@other_bot", inGroup()) }},
		{name: "command in a topic", update: func(r *inboundRig) map[string]any {
			return r.text("/new", inGroup(), map[string]any{"message_thread_id": 9, "is_topic_message": true})
		}, calls: []string{"new -100/9"}, said: "New session"},
		{name: "mistyped command", update: func(r *inboundRig) map[string]any { return r.text("/statuss") }, said: "Did you mean /status?"},
		{name: "unknown command", update: func(r *inboundRig) map[string]any { return r.text("/compost now") }, said: "//compost"},
		{name: "abort behind our mention in a group", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot /abort", inGroup(), map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}})
		}, calls: []string{"abort -100/0"}, said: "Nothing is running"},
		{name: "unknown command behind our mention in a group", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot /poll", inGroup(), map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}})
		}, said: "I don't know /poll"},
		{name: "escaped command behind our mention in a group", update: func(r *inboundRig) map[string]any {
			return r.text("@ductor_bot //poll", inGroup(), map[string]any{"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 11}}})
		}, prompt: []string{"/poll"}},
		{name: "unknown command in a group", update: func(r *inboundRig) map[string]any { return r.text("/poll", inGroup()) }},
		{name: "unknown command that names us", update: func(r *inboundRig) map[string]any { return r.text("/poll@ductor_bot", inGroup()) }, said: "/poll"},
		{name: "a line for the agent that begins with a slash", update: func(r *inboundRig) map[string]any { return r.text("//compact now") }, prompt: []string{"/compact now"}},
		{name: "a path", update: func(r *inboundRig) map[string]any { return r.text("/etc/hosts is wrong") }, prompt: []string{"/etc/hosts is wrong"}},
		{name: "a dash", update: func(r *inboundRig) map[string]any { return r.text("--help") }, prompt: []string{"--help"}},
		{name: "help", update: func(r *inboundRig) map[string]any { return r.text("/help") }, said: "/sessions"},
		{name: "status", update: func(r *inboundRig) map[string]any { return r.text("/status") }, said: "Claude · opus"},
		{name: "status in a sandbox", update: func(r *inboundRig) map[string]any { return r.text("/status") },
			set: func(r *inboundRig) { r.desk.status.Sandbox = "web" }, said: "Runs in the sandbox web (docker)\nSessions in one sandbox can read"},
		{name: "status in a sandbox of its own", update: func(r *inboundRig) map[string]any { return r.text("/status") },
			set: func(r *inboundRig) { r.desk.status.Sandbox = "web/7/0" }, said: "Runs in the sandbox web (docker), in a container for this chat alone"},
		{name: "cwd", update: func(r *inboundRig) map[string]any { return r.text("/cwd") }, said: "/home/u"},
		{name: "cwd elsewhere", update: func(r *inboundRig) map[string]any { return r.text("/cwd src") }, calls: []string{"cwd 7/0 src"}, said: "/home/u/src"},
		{name: "cwd outside", update: func(r *inboundRig) map[string]any { return r.text("/cwd /etc") },
			set: func(r *inboundRig) { r.desk.fail = orchestrator.ErrOutsideRoot }, calls: []string{"cwd 7/0 /etc"}, said: "outside"},
		{name: "full queue", update: func(r *inboundRig) map[string]any { return r.text("more") },
			set: func(r *inboundRig) { r.desk.full = true }, said: "queue is full"},
		{name: "a store in trouble", update: func(r *inboundRig) map[string]any { return r.text("more") },
			set: func(r *inboundRig) { r.desk.fail = errors.New("disk full") }, said: "couldn't save"},
		{name: "a handler that panics", update: func(r *inboundRig) map[string]any { return r.text("panic") }, said: "went wrong inside ductor"},
		{name: "edit of a waiting message", update: func(r *inboundRig) map[string]any {
			return map[string]any{"edited_message": r.text("better")["message"]}
		}, set: func(r *inboundRig) { r.desk.ahead = 1 }, calls: []string{`edit 7/0 501 "better"`}},
		{name: "edit of a message that ran", update: func(r *inboundRig) map[string]any {
			return map[string]any{"edited_message": r.text("better")["message"]}
		}, calls: []string{`edit 7/0 501 "better"`}},
		{name: "a live location moves", update: func(r *inboundRig) map[string]any {
			m := r.text("", map[string]any{"text": nil, "location": map[string]any{"latitude": 52.5, "longitude": 13.4, "live_period": 900}})
			return map[string]any{"edited_message": m["message"]}
		}},
		{name: "edit into an abort", update: func(r *inboundRig) map[string]any {
			return map[string]any{"edited_message": r.text("/abort")["message"]}
		}, set: func(r *inboundRig) { r.desk.running = true }, calls: []string{"abort 7/0"}, said: "Stopped."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				if tt.set != nil {
					tt.set(r)
				}
				r.send(tt.update(r))
				r.settle()
				if got := r.desk.Texts(); !slices.Equal(got, tt.prompt) {
					t.Errorf("prompts %q, want %q", got, tt.prompt)
				}
				if got := r.desk.Calls(); !slices.Equal(got, tt.calls) {
					t.Errorf("the desk was asked %q, want %q", got, tt.calls)
				}
				said := r.journal.said()
				switch {
				case tt.said == "" && !slices.Equal(said, none):
					t.Errorf("want silence, got %q", said)
				case tt.said != "" && (len(said) != 1 || !strings.Contains(said[0], tt.said)):
					t.Errorf("want one notice with %q, got %q", tt.said, said)
				}
			})
		})
	}
}

// The answer to /cwd names the new session of another folder, and that nothing changes in the same folder.
func TestCwdNamesWhatChanges(t *testing.T) {
	for path, want := range map[string]string{
		".": "The agent already works in /home/u.",
		"src": "From now on the agent works in /home/u/src. Your next message begins a new session; " +
			"/sessions has the earlier ones.",
	} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.send(r.text("/cwd " + path))
			r.settle()
			if l := r.journal.lastNotice(t); l.Text != want {
				t.Errorf("/cwd %s says %q", path, l.Text)
			}
		})
	}
}

// In a private chat, answers are no replies, but refusals are: other messages may have come in between.
func TestARefusalRepliesToTheMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		fields map[string]any
		set    func(r *inboundRig)
		reply  int
	}{
		"an answer":  {text: "/help"},
		"full queue": {text: "more", set: func(r *inboundRig) { r.desk.full = true }, reply: 501},
		"not stored": {text: "more", set: func(r *inboundRig) { r.desk.fail = errors.New("no") }, reply: 501},
		"a panic":    {text: "panic", reply: 501},
		"a sticker":  {fields: map[string]any{"text": nil, "sticker": map[string]any{"file_id": "s"}}, reply: 501},
		"a large file": {fields: map[string]any{
			"text": nil, "document": map[string]any{"file_id": "d", "file_size": 1 << 40},
		}, reply: 501},
		"unheard speech": {fields: map[string]any{"text": nil, "voice": map[string]any{"file_id": "v"}}, reply: 501},
	} {
		t.Run(name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				if tt.set != nil {
					tt.set(r)
				}
				r.send(r.text(tt.text, tt.fields))
				r.settle()
				if l := r.journal.lastNotice(t); l.ReplyTo != tt.reply {
					t.Errorf("%q replies to %d, want %d", l.Text, l.ReplyTo, tt.reply)
				}
			})
		})
	}
}

func TestAnswersInGroupsAnswerToTheMessage(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.send(r.text("/help", inGroup()))
		synctest.Wait()
		if l := r.journal.lastNotice(t); l.ReplyTo != 501 {
			t.Errorf("reply to %d, want 501", l.ReplyTo)
		}
	})
}

// The owner gets the new id of an allowed group that became a supergroup, whoever caused that, and only if the new id
// is not allowed yet. Nobody is notified about other groups.
func TestTheOwnerLearnsTheNewIDOfAGroupThatMoved(t *testing.T) {
	const moved = -1001234
	for name, c := range map[string]struct {
		group, by int
		allowed   []int64
		told      bool
	}{
		"by the owner":            {-100, owner, []int64{-100}, true},
		"by a stranger":           {-100, 66, []int64{-100}, true},
		"to an id that may":       {-100, owner, []int64{-100, moved}, false},
		"of a group of strangers": {-66, owner, []int64{-100}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.configure(func(o *updates.RouterOptions) {
					o.Owner = owner
					setPolicy(o, func(p *updates.Policy) { p.AllowedGroups = c.allowed })
				})
				r.send(r.text("", map[string]any{
					"chat": map[string]any{"id": c.group, "type": "group", "title": "Team"}, "from": map[string]any{"id": c.by, "first_name": "Someone"},
					"migrate_to_chat_id": moved,
				}))
				synctest.Wait()
				if moves := r.desk.Calls(); slices.Contains(moves, fmt.Sprintf("move chat %d to %d", c.group, moved)) != slices.Contains(c.allowed, int64(c.group)) {
					t.Errorf("the domain is asked %q", moves)
				}
				said := r.journal.said()
				if !c.told && len(said) == 0 {
					return
				}
				if !c.told || len(said) != 1 || !strings.Contains(said[0], "Team") || !strings.Contains(said[0], "-1001234") {
					t.Fatalf("it says %q", said)
				}
				if to := r.journal.notices[0].Conversation; to != (orchestrator.ConversationID{Chat: owner}) {
					t.Errorf("it is told to %v", to)
				}
				if !strings.Contains(strings.Join(r.logs.Lines(), "\n"), "a group became a supergroup") {
					t.Errorf("the log does not say it: %q", r.logs.Lines())
				}
			})
		})
	}
}

func TestUndecodableUpdateIsPassedOver(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		broken := r.text("first")
		broken["message"] = "not an object"
		r.send(broken, r.text("second"))
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"second"}) {
			t.Errorf("prompts %q", got)
		}
		if !strings.Contains(strings.Join(r.logs.Lines(), "\n"), "cannot be decoded update=101") {
			t.Errorf("the log does not name it: %q", r.logs.Lines())
		}
	})
}

func TestAnUpdateThatDuctorCrashedOverIsGivenUp(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		raw, err := json.Marshal(r.text("deadly"))
		if err != nil {
			t.Fatal(err)
		}
		u := orchestrator.Update{ID: 9, Raw: raw}
		_, _ = r.journal.AppendUpdates(t.Context(), []orchestrator.Update{u})
		u.Crashes = orchestrator.MostCrashes
		r.Dispatch(t.Context(), []orchestrator.Update{u})
		synctest.Wait()
		if got := r.desk.Texts(); len(got) > 0 || len(r.journal.Open()) > 0 {
			t.Errorf("prompts %q, open updates %v", got, r.journal.Open())
		}
		if said := r.journal.lastNotice(t).Text; !strings.Contains(said, "I crashed more than once") {
			t.Errorf("the chat is told %q", said)
		}
	})
}

func TestTopicsAreConversationsOfTheirOwn(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.configure(respondToAll)
		r.send(
			r.text("a", inGroup(), map[string]any{"message_thread_id": 9, "is_topic_message": true}),
			r.text("b", inGroup(), map[string]any{"message_thread_id": 1}),
		)
		synctest.Wait()
		var keys []string
		for _, p := range r.desk.prompts {
			keys = append(keys, string(p.Conversation.Key()))
		}
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"-100/0", "-100/9"}) {
			t.Errorf("conversations %q", keys)
		}
	})
}

func TestOrderWithinOneConversation(t *testing.T) {
	// All arrive in one batch. Messages before a command are handled before it, later ones after it.
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.hold = make(chan struct{})
		r.send(r.text("before"), r.text("/new"), r.text("after"))
		synctest.Wait()
		if calls := r.desk.Calls(); len(calls) > 0 {
			t.Fatalf("the command overtook a prompt that is being stored: %q", calls)
		}
		close(r.desk.hold)
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"before", "after"}) {
			t.Errorf("prompts %q", got)
		}
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"new 7/0"}) {
			t.Errorf("calls %q", calls)
		}
	})
}

func TestAPromptWaitsForTheCommandBeforeIt(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.holdNew = make(chan struct{})
		r.send(r.text("/new"), r.text("in the new session"))
		synctest.Wait()
		if got := r.desk.Texts(); len(got) > 0 {
			t.Errorf("prompts %q went into the old session", got)
		}
		r.desk.running = true
		r.send(r.text("/abort"))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"abort 7/0"}) {
			t.Errorf("an abort waits for nothing while something runs: %q", calls)
		}
		r.send(r.text("after all"))
		close(r.desk.holdNew)
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"after all"}) {
			t.Errorf("prompts %q", got)
		}
	})
}

// The text after /new is the first prompt of the new session. It was ignored.
func TestNewTakesAPrompt(t *testing.T) {
	for text, want := range map[string]string{
		"/new fix the login":       "fix the login for //",
		"/new@ductor_bot\nfix it":  "fix it for //",
		"/new @fast fix the login": "fix the login for claude/opus/high",
	} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.desk.ahead = 1
			opus := cli.Model{ID: "opus", Efforts: []cli.Effort{"high"}}
			r.desk.menu = []cli.MenuEntry{
				{Agent: "claude", Auth: cli.Auth{State: cli.Authenticated}, Models: []cli.Model{opus}},
			}
			sent := r.text(text)
			r.send(r.text("before"), sent)
			r.settle()
			texts, calls := r.desk.Texts(), r.desk.Calls()
			if len(texts) != 2 || texts[0] != "before" || !slices.Equal(calls, []string{"new 7/0"}) {
				t.Fatalf("%q: prompts %q, calls %q", text, texts, calls)
			}
			w := r.desk.wants[1]
			if got := fmt.Sprintf("%s for %s/%s/%s", texts[1], w.Agent, w.Model, w.Effort); got != want {
				t.Errorf("%q: %s", text, got)
			}
			if said := r.journal.said(); len(said) > 0 {
				t.Errorf("%q is answered with %q", text, said)
			}
			sent["message"].(map[string]any)["text"] = "/new something else"
			r.send(map[string]any{"edited_message": sent["message"]})
			r.settle()
			if calls := r.desk.Calls(); len(calls) != 2 || !strings.HasSuffix(calls[1], `"something else"`) {
				t.Errorf("calls %q after the message was edited", calls)
			}
		})
	}
}

// All arrive in one batch after a time without network. A command that hangs does not prevent the answer to an abort.
func TestAnAbortComesAfterTheCommandsBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  []string
	}{
		"a moment": {time.Second, []string{"new 7/0", "abort 7/0"}},
		"long":     {time.Minute, []string{"abort 7/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			inbound(t, func(t *testing.T, r *inboundRig) {
				r.desk.holdNew = make(chan struct{})
				time.AfterFunc(c.takes, func() { close(r.desk.holdNew) })
				r.send(r.text("/new"), r.text("/abort"), r.text("after all"))
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if calls := r.desk.Calls(); !slices.Equal(calls, c.want) {
					t.Errorf("calls %q", calls)
				}
				time.Sleep(c.takes)
				synctest.Wait()
				if got := r.desk.Texts(); !slices.Equal(got, []string{"after all"}) {
					t.Errorf("prompts %q", got)
				}
			})
		})
	}
}

func TestOneConversationNeverHoldsUpAnother(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.configure(respondToAll)
		held := make(chan struct{})
		r.desk.hold = held
		r.send(r.text("stuck"))
		synctest.Wait()
		r.desk.hold = nil
		start := time.Now()
		r.send(r.text("/status", inGroup()), r.text("free", inGroup()))
		synctest.Wait()
		if got := r.desk.Texts(); !slices.Equal(got, []string{"free"}) || time.Since(start) > 0 {
			t.Errorf("prompts %q after %s", got, time.Since(start))
		}
		close(held)
	})
}

// mostPrompts is how many prompts of one conversation may wait.
const mostPrompts = 128

func TestTooManyMessagesAreToldOnce(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.hold = make(chan struct{})
		r.send(r.text("first"))
		synctest.Wait()
		for range mostPrompts + 20 {
			r.send(r.text("more"))
		}
		close(r.desk.hold)
		synctest.Wait()
		if got := len(r.desk.Texts()); got != mostPrompts+1 {
			t.Errorf("%d prompts, want %d", got, mostPrompts+1)
		}
		if said := r.journal.said(); len(said) != 1 || !strings.Contains(said[0], "Too many messages") {
			t.Errorf("notices %q", said)
		}
	})
}

func TestUpdatesOfAStoppedBotStayInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInboundRig(t)
		r.desk.fail = orchestrator.ErrShutdown
		r.send(r.text("one"), r.text("/new"), r.press("c:turn-1", 5))
		synctest.Wait()
		r.end()
		r.send(r.text("two"), r.text("/abort"))
		if open := r.journal.Open(); !slices.Equal(open, []int64{101, 102, 103, 104, 105}) {
			t.Errorf("open updates %v: what was not done is taken up after the restart", open)
		}
		if said := r.journal.said(); len(said) > 0 {
			t.Errorf("notices %q", said)
		}
	})
}

// FuzzRoute: no update stops those after it. The router decides about any update.
func FuzzRoute(f *testing.F) {
	for _, s := range []string{
		`{"update_id":1}`, `{`, `{"update_id":1,"message":null}`, `{"update_id":1,"message":{"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"hi"}}`,
		`{"callback_query":{"from":{"id":7},"data":"w:a:b:c","message":{"chat":{"id":7,"type":"private"}}}}`,
		`{"message":{"chat":{"id":-100,"type":"supergroup"},"from":{"id":7},"text":"@ductor_bot","entities":[{"type":"mention","offset":-1,"length":5}]}}`,
		`{"edited_message":{"chat":{"id":7,"type":"private"},"from":{"id":7},"caption":"x"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		rig := newInboundRig(t)
		defer rig.end()
		_, _ = rig.journal.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 1, Raw: raw}})
		rig.Dispatch(t.Context(), []orchestrator.Update{{ID: 1, Raw: raw}})
		for _, line := range rig.logs.Lines() {
			if line == "" || !utf8.ValidString(line) && utf8.Valid(raw) {
				t.Errorf("log line %q", line)
			}
		}
	})
}

// The notice about a recording without known words comes only if the reply to the recording runs.
func TestARepliedRecordingThatStaysUnheard(t *testing.T) {
	for _, full := range []bool{false, true} {
		inbound(t, func(t *testing.T, r *inboundRig) {
			r.desk.full = full
			r.send(r.text("translate", map[string]any{"reply_to_message": map[string]any{
				"message_id": 2, "date": 1, "from": map[string]any{"id": owner, "first_name": "Ann"},
				"voice": map[string]any{"file_id": "v", "file_unique_id": "v", "duration": 1, "file_size": 3},
			}}))
			r.settle()
			prompts, said := []string{fence.LostSpeech() + "translate"}, "runs without the recording"
			if full {
				prompts, said = nil, "queue is full"
			}
			if got := r.desk.Texts(); !slices.Equal(got, prompts) {
				t.Errorf("with a full queue %v, prompts %q", full, got)
			}
			if got := r.journal.said(); len(got) != 1 || !strings.Contains(got[0], said) {
				t.Errorf("with a full queue %v, the notices are %q", full, got)
			}
		})
	}
}
