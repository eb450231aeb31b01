package judge

import (
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// stage builds evidence by hand. Each of its methods advances the clock by a second.
type stage struct {
	Evidence
	t    testing.TB
	now  time.Time
	next telegram.MessageID
}

const (
	ownerChat   telegram.ChatID = 1
	annChat     telegram.ChatID = 2
	malloryChat telegram.ChatID = 4
)

func newStage(t testing.TB, text string) *stage {
	t.Helper()
	s, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	e := Evidence{Scenario: s, Began: now, Files: map[string]string{}, Texts: map[string]string{},
		Documents: map[string]string{}, Secret: "hush-hush"}
	e.Chats = []Chat{{Name: "owner", ID: ownerChat}, {Name: "ann", ID: annChat}, {Name: "mallory", ID: malloryChat}}
	return &stage{Evidence: e, t: t, now: now}
}

func (s *stage) pass() time.Time {
	s.now = s.now.Add(time.Second)
	s.Ended = s.now
	return s.now
}

func (s *stage) chat(id telegram.ChatID) *Chat {
	for i := range s.Chats {
		if s.Chats[i].ID == id {
			return &s.Chats[i]
		}
	}
	s.t.Fatalf("no chat %d", id)
	return nil
}

// says adds a user's prompt, or a text if the token has a slash.
func (s *stage) says(by scenario.Person, chat telegram.ChatID, what string) telegram.MessageID {
	s.next++
	sent := Sent{By: by, In: s.chat(chat).Name, Chat: chat, ID: s.next, At: s.pass()}
	if strings.HasPrefix(what, "p") {
		sent.Token = scenario.Token(what)
	} else {
		sent.Text = what
	}
	s.Sent = append(s.Sent, sent)
	c := s.chat(chat)
	c.History = append(c.History, telegram.Message{ID: s.next, Chat: chat, From: telegram.Sender{Name: string(by)},
		Date: s.now, Text: what})
	return s.next
}

// shows adds a message of the bot.
func (s *stage) shows(chat telegram.ChatID, replyTo telegram.MessageID, text string,
	buttons ...string) telegram.MessageID {
	s.next++
	m := telegram.Message{ID: s.next, Chat: chat, From: telegram.Sender{Bot: true}, Date: s.pass(), Text: text,
		ReplyTo: replyTo}
	for _, b := range buttons {
		m.Keyboard = append(m.Keyboard, []telegram.Button{{Text: b, Data: b}})
	}
	m.Versions = []telegram.Version{{At: s.now, Text: text, Keyboard: m.Keyboard}}
	c := s.chat(chat)
	c.History = append(c.History, m)
	return s.next
}

func (s *stage) presses(by scenario.Person, chat telegram.ChatID, id telegram.MessageID, label string) {
	p := Press{By: by, In: s.chat(chat).Name, Chat: chat, Message: id, Label: label, At: s.pass(), Answered: true}
	for _, m := range s.chat(chat).History {
		if m.ID == id {
			p.Text = m.Text
		}
	}
	s.Presses = append(s.Presses, p)
}

// cardOf adds a prompt and the card of its turn. The agent has got the prompt.
func (s *stage) cardOf(token scenario.Token) telegram.MessageID {
	s.says("owner", ownerChat, string(token))
	s.agent(Got, token, "")
	return s.shows(ownerChat, 0, "thinking…", "⏹ Stop")
}

// fails adds another prompt. Afterwards the card of the running turn shows that the turn failed.
func (s *stage) fails(card telegram.MessageID, token scenario.Token) {
	s.says("owner", ownerChat, string(token))
	for i, m := range s.chat(ownerChat).History {
		if m.ID == card {
			m.Text, m.Keyboard = "⚠️ Claude ended unexpectedly.", [][]telegram.Button{{{Text: "🔁 Run again"}}}
			m.Versions = append(m.Versions, telegram.Version{At: s.pass(), Text: m.Text, Keyboard: m.Keyboard})
			s.chat(ownerChat).History[i] = m
		}
	}
}

func (s *stage) agent(what What, token scenario.Token, name string) {
	s.Agents = append(s.Agents, AgentEvent{At: s.pass(), Agent: "claude", Token: token, What: what, Name: name})
}

func (s *stage) stops(how scenario.Ending) {
	s.Stops = append(s.Stops, Stop{How: how, At: s.pass(), Up: s.pass()})
}

func (s *stage) diskFails(how scenario.DiskFault) {
	s.Faults.Disk = append(s.Faults.Disk, DiskFailure{Fault: how, At: s.pass()})
}

func (s *stage) calls(chat telegram.ChatID, retryAfter int) {
	at := s.pass()
	s.Calls = append(s.Calls, telegram.Call{Seq: len(s.Calls) + 1, At: at, Done: at, Method: "sendMessage", Chat: chat,
		RetryAfter: retryAfter})
}

// sends adds the call that sent a message.
func (s *stage) sends(chat telegram.ChatID, id telegram.MessageID) {
	s.Calls = append(s.Calls, telegram.Call{
		Seq: len(s.Calls) + 1, At: s.now, Done: s.now, Method: "sendMessage", Chat: chat, Message: id, OK: true,
	})
}

// breaks adds a call whose response does not arrive.
func (s *stage) breaks(chat telegram.ChatID) {
	at := s.pass()
	s.Calls = append(s.Calls, telegram.Call{Seq: len(s.Calls) + 1, At: at, Done: at, Method: "sendMessage", Chat: chat,
		OK: true, Fault: telegram.DropAfter})
}

// whole adds a complete run of p1.
func (s *stage) whole() telegram.MessageID {
	id := s.says("owner", ownerChat, "p1")
	s.agent(Got, "p1", "")
	s.agent(Effect, "p1", "p1.1")
	s.agent(Done, "p1", "")
	s.shows(ownerChat, id, "p1w0 p1w1\n✓ Bash echo p1.1\np1w2\n✅ Done")
	return id
}

const (
	plainPrompt = "owner says p1: text 2; run; text 1\n"
	askPrompt   = "owner says p1: ask\n"
	failedFlush = "disk fsync times 1\n" + plainPrompt
	failedDisk  = "disk eio times 1\n" + plainPrompt
	slowDisk    = "disk slow for 3s\n" + plainPrompt
	failPrompt  = "owner says p1: text 1; run; text 1; fail 500 times 1; text 1\n"
	// The agent ignores SIGTERM.
	stubbornPrompt = "owner says p1: text 1; run; break stubborn; fail 401 times 1; text 1\n"
	// Only Claude runs commands in the background.
	backgroundPrompt = "owner says p1: text 1; run; text 1; background 1s; fail 500 times 1; text 1\n"
	oneShot          = "set agents.codex.mode \"one-shot\"\n"
)

// verdict is a run with the rules that it violates.
type verdict struct {
	name, scenario string
	want           string // rules, with a space between; empty for none
	play           func(*stage)
}

func (v verdict) test(t *testing.T) {
	s := newStage(t, v.scenario)
	v.play(s)
	var got []string
	for _, found := range Judge(s.Evidence) {
		if found.Detail == "" {
			t.Errorf("%s has no detail", found.Rule)
		}
		got = append(got, found.Rule)
	}
	if strings.Join(got, " ") != v.want {
		t.Errorf("got %q, want %q: %v", got, v.want, Judge(s.Evidence))
	}
}

func TestVerdicts(t *testing.T) {
	seen := map[string]bool{}
	for _, list := range [][]verdict{
		verdictsOfTurns(), verdictsOfJobs(), verdictsOfLostBegins(), verdictsOfEdits(), verdictsOfAnswers(),
		verdictsOfShowAgain(), verdictsOfWithdrawnText(), verdictsOfApprovals(), verdictsOfAborts(),
		verdictsOfCards(), verdictsOfCardsOnBadDisks(), verdictsOfLostPrompts(), verdictsOfStrangers(),
		verdictsOfBudgets(), verdictsOfSharedBudgets(), verdictsOfUndoneBudgets(), verdictsOfStubbornAgents(),
		verdictsOfTheRest(),
	} {
		for _, v := range list {
			t.Run(strings.ReplaceAll(v.name, " ", "_"), v.test)
			for _, rule := range strings.Fields(v.want) {
				seen[rule] = true
			}
		}
	}
	for _, r := range Rules() {
		if !seen[r.Name] || r.Promise == "" {
			t.Errorf("no run violates %s", r.Name)
		}
	}
}
