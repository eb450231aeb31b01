package card

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// rig is a card with everything it needs, under a fake clock.
type rig struct {
	*testing.T
	chat    *bottest.Chat
	journal *bottest.Journal
	outbox  *outbox.Outbox
	cards   *Cards
	turn    orchestrator.Turn
	start   time.Time
}

func withRig(t *testing.T, play func(s *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		play(s)
		s.close()
	})
}

func newRig(t *testing.T) *rig {
	s := &rig{
		T: t, chat: bottest.NewChat(t), journal: bottest.NewJournal(), start: time.Now(),
		turn: orchestrator.Turn{
			ID: "turn1", State: orchestrator.TurnRunning,
			Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 7, Topic: 4}, Message: 99},
		},
	}
	s.open()
	return s
}

// open starts a process on the chat and the journal.
func (s *rig) open() {
	s.outbox = bottest.NewOutbox()
	o := over(s.chat, s.outbox, s.journal)
	o.Look = func() Look { return Look{Footer: []FooterField{FooterModel, FooterTime}} }
	s.cards = New(o)
}

// restyle changes the look of cards from now on.
func (c *Cards) restyle(f func(l *Look)) {
	l := c.look()
	f(&l)
	c.opts.Look = func() Look { return l }
}

// over returns options for cards over a client, an outbox and a journal.
func over(client interface {
	message.Client
	Typing(ctx context.Context, to orchestrator.ConversationID) error
}, out *outbox.Outbox, journal *bottest.Journal,
) Options {
	return Options{
		Messages: message.New(out, client, journal, nil, slog.New(slog.DiscardHandler)), Typing: client.Typing,
		Outbox: out, Journal: journal, Buttons: func(lang.Printer) Buttons { return bottest.Buttons{} },
	}
}

func (s *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.outbox.Drain(ctx); err != nil {
		s.Errorf("drain: %v", err)
	}
}

func (s *rig) wantText(want string) {
	s.Helper()
	synctest.Wait()
	if got := s.chat.Text(); got != want {
		s.Errorf("the chat shows\n%s\nwant\n%s", got, want)
	}
}

func (s *rig) newCard() orchestrator.Card { return s.cards.Open(s.turn) }

func (s *rig) redeliver() {
	s.Helper()
	if err := s.cards.Redeliver(context.Background(), s.turn); err != nil {
		s.Fatal(err)
	}
}

func (s *rig) finish(c orchestrator.Card, o orchestrator.Outcome) {
	s.Helper()
	if o.State == "" {
		o.State = orchestrator.TurnDone
	}
	if err := c.Finish(context.Background(), o); err != nil {
		s.Errorf("finish: %v", err)
	}
}

func ended(id string, code int) cli.ToolEnded {
	return cli.ToolEnded{ID: cli.ToolID(id), ExitCode: &code, Duration: 1200 * time.Millisecond}
}

func TestCardShowsAnAnswerGrow(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		s.wantText("")
		c.Show(cli.SessionStarted{Model: "opus"})
		c.Show(cli.TextDelta{Text: "Hel"})
		s.wantText("Hel") // at once
		c.Show(cli.TextDelta{Text: "lo **wor"})
		s.wantText("Hel")
		time.Sleep(secondAfter)
		s.wantText("Hello **wor")
		c.Show(cli.TextDelta{Text: "ld**"})
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "npm test"})
		time.Sleep(time.Second)
		s.wantText("Hello world\n\n⏳ Run npm test")
		c.Show(ended("1", 0))
		c.Show(cli.TextDelta{Text: "\n\nAll *green*."})
		time.Sleep(time.Second)
		s.wantText("Hello world\n\n✓ Run npm test · 1.2 s\n\nAll green.")
		s.finish(c, orchestrator.Outcome{Text: "Hello **world**\n\nAll *green*.", Model: "opus", Duration: 3 * time.Second})
		s.wantText("Hello world\n\n✓ Run npm test · 1.2 s\n\nAll green.\n\nopus · 3.0 s")
		if n := s.chat.Count("send"); n != 1 {
			t.Errorf("%d messages were sent, want one that grew", n)
		}
	})
}

func TestCardEndings(t *testing.T) {
	denied := []cli.Denial{{Tool: "Bash", Title: "rm -rf /", Reason: "not in this mode"}}
	for _, c := range []struct {
		name    string
		events  []cli.Event
		outcome orchestrator.Outcome
		want    string
	}{
		{"answer", nil, orchestrator.Outcome{Text: "Yes."}, "Yes."},
		{"nothing", nil, orchestrator.Outcome{}, "The agent ended without a text answer."},
		{"nothing that can be seen", []cli.Event{cli.TextDelta{Text: "\u200b \u2060"}}, orchestrator.Outcome{Text: "\u200b \u2060"},
			"The agent ended without a text answer."},
		{"aborted", []cli.Event{cli.TextDelta{Text: "I will"}}, orchestrator.Outcome{State: orchestrator.TurnAborted, Text: "I will"},
			"I will\n\n⏹ Aborted."},
		{"aborted in a tool", []cli.Event{cli.ToolStarted{ID: "a", Name: "Bash", Title: "sleep 99"}},
			orchestrator.Outcome{State: orchestrator.TurnAborted}, "✗ Run sleep 99 · did not end\n⏹ Aborted."},
		{"denied", nil, orchestrator.Outcome{Text: "I could not.", Denials: append(denied, denied...)},
			"I could not.\n\n⛔ Run rm -rf / was denied: not in this mode"},
		{"denied, with the line of a tool", []cli.Event{
			cli.ToolStarted{ID: "1", Name: "Bash", Title: "rm -rf /"}, cli.ToolEnded{ID: "1", Err: "permission denied"},
		}, orchestrator.Outcome{Text: "I could not.", Denials: denied}, "⛔ Run rm -rf / · denied\n\nI could not.\n\n⛔ Run: not in this mode"},
		{"denied, with room for the reason in the line", []cli.Event{
			cli.ToolStarted{ID: "1", Name: "Bash", Title: "rm -rf /"}, cli.ToolEnded{ID: "1", Err: "The user does not want to do this"},
		}, orchestrator.Outcome{Text: "I could not.", Denials: denied}, "⛔ Run rm -rf / · denied: not in this mode\n\nI could not."},
		{"in no time", nil, orchestrator.Outcome{Text: "Yes.", Duration: 4 * time.Millisecond}, "Yes.\n\n<0.1 s"},
		{"failed, retry", nil, orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "Claude crashed.", Recovery: orchestrator.Repeatable()},
			"⚠️ Claude crashed.\n[Run again]"},
		{"failed, fresh", nil, orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "No such session.", Recovery: orchestrator.Recovery{Offer: []orchestrator.Action{orchestrator.ActionFresh, orchestrator.ActionAgain}}},
			"⚠️ No such session.\n[Start fresh]\n[Run again]"},
		{"failed, stop", nil, orchestrator.Outcome{State: orchestrator.TurnFailed, Failure: "Refused."},
			"⚠️ Refused."},
		{"interrupted", []cli.Event{cli.TextDelta{Text: "Half"}},
			orchestrator.Outcome{State: orchestrator.TurnInterrupted, Text: "Half", Failure: "Interrupted.", Recovery: orchestrator.Repeatable()},
			"Half\n\n⚠️ Interrupted.\n[Run again]"},
		{"second attempt", nil, orchestrator.Outcome{Text: "Yes.", Fallback: true, Model: "opus"}, "Yes.\n\nsecond attempt · opus"},
		{"outcome overrules what was streamed", []cli.Event{cli.TextDelta{Text: "Helo"}}, orchestrator.Outcome{Text: "Hello"}, "Hello"},
		{"sub-agent", []cli.Event{
			cli.ToolStarted{ID: "p", Name: "Task", Title: "explore"},
			cli.ToolStarted{ID: "c1", Name: "Read", Parent: "p"}, cli.ToolEnded{ID: "c1"},
			cli.ToolStarted{ID: "c2", Name: "Read", Parent: "p"}, cli.ToolStarted{ID: "d", Name: "X", Parent: "c2"},
			ended("p", 0),
		}, orchestrator.Outcome{Text: "Done."}, "✓ Sub-agent explore · 3 tools · 1.2 s\n\nDone."},
		{"failing tool", []cli.Event{cli.ToolStarted{ID: "1", Name: "Bash", Title: "false"}, ended("1", 1)},
			orchestrator.Outcome{Text: "Hm."}, "✗ Run false · exit 1 · 1.2 s\n\nHm."},
		{"notes", []cli.Event{
			cli.CompactBoundary{PreTokens: 154000}, cli.Status{Kind: cli.StatusWarning, Detail: "hook\nfailed"},
			cli.FileChanged{Path: "/w/a.go", Kind: cli.FileAdded, Diff: "--- a\n+++ b\n+x\n+y\n-z\n"}, cli.RateLimited{}, cli.RateLimited{},
		}, orchestrator.Outcome{Text: "Ok."},
			"🗜 context compacted, it had 154.0k tokens\n⚠️ hook failed\n➕ /w/a.go +2 −1\n⏳ the usage limit is near or reached\n\nOk."},
	} {
		t.Run(c.name, func(t *testing.T) {
			withRig(t, func(s *rig) {
				k := s.newCard()
				for _, ev := range c.events {
					k.Show(ev)
				}
				s.finish(k, c.outcome)
				s.wantText(c.want)
			})
		})
	}
}

// The line says that the agent's process starts while it does, and how long the user has been waiting.
func TestCardTellsOfALongWait(t *testing.T) {
	withRig(t, func(s *rig) {
		s.turn.Agent = "claude"
		c := s.newCard()
		c.Show(cli.Status{Kind: cli.StatusStarting})
		time.Sleep(3 * time.Second)
		s.wantText("🚀 starting Claude…")
		c.Show(cli.SessionStarted{AgentSessionID: "1"})
		time.Sleep(38 * time.Second)
		s.wantText("💭 thinking… 40 s")
		if n := s.chat.Count("edit"); n != 4 {
			t.Errorf("%d edits for 40 s of waiting, want one each 10 s", n)
		}
		time.Sleep(time.Hour)
		s.wantText("💭 thinking… 1 h 0 min")
		if n := s.chat.Count("edit"); n > 80 {
			t.Errorf("%d edits for an hour of waiting", n)
		}
		c.Show(cli.TextDelta{Text: "Here"})
		time.Sleep(time.Second)
		s.wantText("Here")
		time.Sleep(3 * time.Second)
		s.wantText("Here\n\n💭 thinking…")
		s.finish(c, orchestrator.Outcome{Text: "Here"})
	})
}

// If the agent is running already, the card says nothing about its start.
func TestCardOfAQuickStartSaysNothingOfIt(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.Status{Kind: cli.StatusStarting})
		time.Sleep(100 * time.Millisecond)
		c.Show(cli.SessionStarted{AgentSessionID: "1"})
		time.Sleep(3 * time.Second)
		s.wantText("💭 thinking…")
		if n := s.chat.Count("edit"); n != 0 {
			t.Errorf("%d edits", n)
		}
		s.finish(c, orchestrator.Outcome{Text: "Yes"})
	})
}

func TestCardSaysThatItThinksOnlyAfterSilence(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		time.Sleep(1900 * time.Millisecond)
		s.wantText("")
		if s.chat.Count("typing") != 1 {
			t.Error("no typing was shown")
		}
		time.Sleep(200 * time.Millisecond)
		s.wantText("💭 thinking…")
		c.Show(cli.Status{Kind: cli.StatusRetrying, Detail: "529"})
		time.Sleep(time.Second)
		s.wantText("🔁 asking the model's API again… 529")
		c.Show(cli.Status{Kind: cli.StatusRetrying, Retry: cli.Retry{Why: cli.LimitReached, Attempt: 6, Most: 10, In: 16 * time.Second}})
		time.Sleep(time.Second)
		s.wantText("🔁 asking the model's API again… the model's rate limit is reached; try 6 of 10 in 16 s")
		c.Show(cli.Status{Kind: cli.StatusWaiting, Detail: "the sandbox web is being prepared"})
		time.Sleep(9 * time.Second)
		s.wantText("⏳ the sandbox web is being prepared…")
		time.Sleep(2 * time.Second)
		s.wantText("⏳ the sandbox web is being prepared… 10 s")
		c.Show(cli.Status{Kind: cli.StatusIdle})
		time.Sleep(3 * time.Second)
		s.wantText("💭 thinking…")
		c.Show(cli.TextDelta{Text: "Here"})
		time.Sleep(time.Second)
		s.wantText("Here")
		time.Sleep(3 * time.Second)
		s.wantText("Here\n\n💭 thinking…")
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
		time.Sleep(10 * time.Second)
		s.wantText("Here\n\n⏳ Run make")
		s.finish(c, orchestrator.Outcome{Text: "Here"})
	})
}

// A message whose request panics may be in the chat. It is not sent again, and a notice warns the user.
func TestCardOfAMessageWhoseRequestPanics(t *testing.T) {
	withRig(t, func(s *rig) {
		first := true
		s.chat.Seen = func(render.Text) {
			if first {
				first = false
				panic("a defect")
			}
		}
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "Hello."})
		time.Sleep(time.Second)
		s.finish(c, orchestrator.Outcome{Text: "Hello."})
		if n := s.chat.Count("send"); n != 2 {
			t.Errorf("%d messages were sent, want the answer and a notice", n)
		}
		if got := s.chat.Text(); !strings.HasPrefix(got, "⚠️ The connection broke") {
			t.Errorf("the chat shows %q", got)
		}
	})
}

func TestCardManyToolsStayCompact(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		for i := range 40 {
			id := fmt.Sprint(i)
			c.Show(cli.ToolStarted{ID: cli.ToolID(id), Name: []string{"Bash", "Read"}[i%2], Title: "t" + id})
			c.Show(ended(id, i/39))
			time.Sleep(100 * time.Millisecond)
		}
		s.finish(c, orchestrator.Outcome{Text: "Done."})
		got := s.chat.Text()
		if lines := strings.Count(got, "\n"); lines > foldAbove+2 {
			t.Errorf("%d lines:\n%s", lines, got)
		}
		for _, want := range []string{" tools: Run ×", "✓ Run t38", "✗ Read t39 · exit 1"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
	})
}

func TestCardArrivesWholeUnderOneCallASecond(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = strict(3)
		c := s.newCard()
		for i := range 20 {
			id := fmt.Sprint(i)
			c.Show(cli.TextDelta{Text: fmt.Sprintf("\n\nStep %d.", i)})
			c.Show(cli.ToolStarted{ID: cli.ToolID(id), Name: "Bash", Title: "step " + id})
			time.Sleep(150 * time.Millisecond)
			c.Show(ended(id, 0))
		}
		var answer strings.Builder
		for i := range 20 {
			fmt.Fprintf(&answer, "\n\nStep %d.", i)
		}
		s.finish(c, orchestrator.Outcome{Text: answer.String()})
		for i := range 20 {
			if want := fmt.Sprintf("Step %d.\n\n✓ Run step %d · 1.2 s", i, i); !strings.Contains(s.chat.Text(), want) {
				t.Errorf("%q is missing", want)
			}
		}
	})
}

// strict rejects calls beyond one a second and a burst with 429.
func strict(burst int) func(string) bottest.Mishap {
	var full time.Time
	return func(string) bottest.Mishap {
		now := time.Now()
		if full.Before(now) {
			full = now
		}
		if full.Sub(now) > time.Duration(burst-1)*time.Second {
			return bottest.RateLimited
		}
		full = full.Add(time.Second)
		return bottest.GoesWell
	}
}

func TestCardLongAnswerGoesOnInTheNextMessage(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		var answer strings.Builder
		for i := range 400 {
			p := fmt.Sprintf("Paragraph %d says a little and ends.\n\n", i)
			answer.WriteString(p)
			c.Show(cli.TextDelta{Text: p})
			time.Sleep(50 * time.Millisecond)
		}
		s.finish(c, orchestrator.Outcome{Text: answer.String()})
		posts := s.chat.Visible()
		if len(posts) != 4 {
			t.Errorf("%d messages", len(posts))
		}
		var all []string
		for _, p := range posts {
			all = append(all, p.Text.Text)
		}
		if got, want := strings.Join(all, "\n\n"), strings.TrimSpace(answer.String()); got != want {
			t.Errorf("the chat shows %d bytes, the answer has %d", len(got), len(want))
		}
		if n := s.chat.Count("send"); n != len(posts) {
			t.Errorf("%d sends for %d messages", n, len(posts))
		}
	})
}

func TestCardAToolInASealedMessageEditsOnlyThat(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.ToolStarted{ID: "slow", Name: "Bash", Title: "make world"})
		for i := range 150 {
			c.Show(cli.TextDelta{Text: fmt.Sprintf("Line %d of a long answer, word by word.\n\n", i)})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		before := s.chat.Visible()
		if len(before) < 2 {
			t.Fatalf("%d messages, want the first one sealed", len(before))
		}
		c.Show(ended("slow", 2))
		time.Sleep(1500 * time.Millisecond)
		after := s.chat.Visible()
		if after[0].Edits != before[0].Edits+1 || !strings.HasPrefix(after[0].Text.Text, "✗ Run make world · exit 2") {
			t.Errorf("the first message begins %.60q after %d edits, before %d", after[0].Text.Text, after[0].Edits, before[0].Edits)
		}
		if after[1].Edits != before[1].Edits {
			t.Error("the newest message was edited too")
		}
		s.finish(c, orchestrator.Outcome{State: orchestrator.TurnAborted})
	})
}

func TestCardAMessageDeletedByAPersonComesBackOnce(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "edit" {
				return bottest.DeletedFirst
			}
			return bottest.GoesWell
		}
		c := s.newCard()
		for i := range 20 {
			c.Show(cli.TextDelta{Text: fmt.Sprintf("word%d ", i)})
			time.Sleep(time.Second)
		}
		s.finish(c, orchestrator.Outcome{Text: "word"})
		if n := s.chat.Count("send"); n != 2 {
			t.Errorf("%d sends, want the first and one more", n)
		}
	})
}

func TestCardTopicGone(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Topics[4] = true
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "Hello"})
		time.Sleep(1 * time.Second)
		s.wantText("(The topic is gone, so this comes here.)\n\nHello") // without waiting for more text
		s.finish(c, orchestrator.Outcome{Text: "Hello there"})
		s.wantText("(The topic is gone, so this comes here.)\n\nHello there")
		if p := s.chat.Visible()[0]; p.Topic != 0 {
			t.Errorf("it is in topic %d", p.Topic)
		}
	})
}

func TestCardChatGone(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "Hello"})
		synctest.Wait()
		s.chat.Mu.Lock()
		s.chat.Gone = true
		s.chat.Mu.Unlock()
		c.Show(cli.TextDelta{Text: " there"})
		time.Sleep(3 * time.Second)
		calls := s.chat.Count("")
		s.finish(c, orchestrator.Outcome{Text: "Hello there"}) // delivery is impossible, which is no error
		if n := s.chat.Count("") - calls; n > 1 {              // the end is tried once
			t.Errorf("%d calls to a chat that is gone", n)
		}
	})
}

func TestCardFormattingRefusedGoesOutPlain(t *testing.T) {
	withRig(t, func(s *rig) {
		left := 1
		s.chat.Mishaps = func(string) bottest.Mishap {
			if left--; left >= 0 {
				return bottest.RefusedOnce
			}
			return bottest.GoesWell
		}
		c := s.newCard()
		s.finish(c, orchestrator.Outcome{Text: "A **bold** word"})
		s.wantText("A bold word")
		if es := s.chat.Visible()[0].Text.Entities; len(es) > 0 {
			t.Errorf("entities %v", es)
		}
	})
}

// The notice that a part may be missing is sent again if it may be missing itself, and not for ever.
func TestTheNoticeOfALossArrives(t *testing.T) {
	const notice = "⚠️ The connection broke while I sent this answer, so part of it may be missing. Tap 👁 Show again to get it.\n[Show again]"
	for lost, want := range map[int]string{2: notice, 4: notice, 20: ""} {
		withRig(t, func(s *rig) {
			calls := 0
			s.chat.Mishaps = func(string) bottest.Mishap {
				if calls++; calls <= lost {
					return bottest.LostBefore
				}
				return bottest.GoesWell
			}
			s.finish(s.newCard(), orchestrator.Outcome{Text: "The answer."})
			s.wantText(want)
		})
	}
}

func TestCardASendWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	for _, f := range []bottest.Mishap{bottest.LostBefore, bottest.LostAfter} {
		t.Run(string(f), func(t *testing.T) {
			withRig(t, func(s *rig) {
				s.chat.Mishaps = bottest.AtFirst(f)
				c := s.newCard()
				s.finish(c, orchestrator.Outcome{Text: "The answer."})
				notice := "⚠️ The connection broke while I sent this answer, so part of it may be missing. Tap 👁 Show again to get it.\n[Show again]"
				want := notice
				if f == bottest.LostAfter {
					want = "The answer.\n----\n" + notice
				}
				s.wantText(want)

				// A restart adds nothing.
				s.restart(orchestrator.TurnDone, "The answer.")
				s.wantText(want)

				// A user asks for it.
				turn := s.turn
				if err := s.cards.ShowAgain(context.Background(), turn); err != nil {
					t.Error(err)
				}
				s.wantText(want + "\n----\nThe answer.")
				if err := s.cards.ShowAgain(context.Background(), turn); err != nil {
					t.Error(err)
				}
				s.wantText(want + "\n----\nThe answer.")
			})
		})
	}
}

// restartAfterDeath waits until the dead process has finished its last calls, and starts another. If the process was
// killed, restartAfterDeath counts the messages that it was sending as lost.
func (s *rig) restartAfterDeath() {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.outbox.Drain(dead) // nothing more is sent
	synctest.Wait()
	if s.journal.Dead() {
		s.countLost()
	}
	s.repairJournal()
	s.open()
}

// countLost counts the messages with the state Sending. The next process cannot know whether they arrived, even if the
// process died just before or just after the request.
func (s *rig) countLost() {
	s.journal.Mu.Lock()
	defer s.journal.Mu.Unlock()
	for _, m := range s.journal.Messages {
		if m.State == orchestrator.Sending {
			s.chat.Lost++
		}
	}
}

// repairJournal makes the journal accept writes again.
func (s *rig) repairJournal() {
	s.journal.Mu.Lock()
	defer s.journal.Mu.Unlock()
	s.journal.DiesAt = 0
}

// restart ends this process like a crash, starts another, and redelivers the turn.
func (s *rig) restart(state orchestrator.TurnState, answer string) {
	s.Helper()
	s.restartAfterDeath()
	s.turn.State = state
	s.turn.Outcome = orchestrator.Outcome{State: state, Text: answer}
	s.redeliver()
}

func TestCardAfterItsEndSendsNothingBeforeTheOutcome(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "Hel"})
		s.wantText("Hel")
		c.Show(cli.TextDelta{Text: "lo"})
		c.End()
		time.Sleep(time.Minute)
		s.wantText("Hel")
		s.finish(c, orchestrator.Outcome{Text: "Hello"})
		s.wantText("Hello")
	})
}

func TestWhatWasOnItsWayAsTheTurnEndedDoesNotStay(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Delay = time.Second
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "All there is."})
		time.Sleep(2500 * time.Millisecond) // thinking… is being sent
		s.wantText("All there is.")
		s.finish(c, orchestrator.Outcome{Text: "All there is."})
		time.Sleep(time.Minute)
		s.wantText("All there is.")
	})
}

func TestCardAnEditWithUnknownOutcomeIsRepeated(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "The"})
		synctest.Wait()
		left := 2
		s.chat.Mishaps = func(string) bottest.Mishap {
			if left--; left >= 0 {
				return bottest.LostBefore
			}
			return bottest.GoesWell
		}
		s.finish(c, orchestrator.Outcome{Text: "The answer."})
		s.wantText("The answer.")
	})
}

func TestCardInterruptedTurnKeepsItsText(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard().(*card)
		c.Show(cli.TextDelta{Text: "I have begun"})
		time.Sleep(2500 * time.Millisecond) // thinking… is shown
		synctest.Wait()
		c.mu.Lock()
		c.finished = true // as good as dead
		c.alarm.timer.Stop()
		c.mu.Unlock()
		want := "I have begun\n\n⚠️ Interrupted by a restart.\n[Run again]"
		s.restart(orchestrator.TurnInterrupted, "")
		s.wantText(want)
		s.restart(orchestrator.TurnInterrupted, "")
		s.wantText(want)
	})
}

// The journal has no text for a turn that ended within its first two seconds. Its message keeps its text, and loses its
// Stop button.
func TestCardInterruptedBeforeItsTextWasStored(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard().(*card)
		c.Show(cli.TextDelta{Text: "I have begun"})
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
		time.Sleep(time.Second)
		synctest.Wait()
		c.mu.Lock()
		c.finished = true // as good as dead
		c.alarm.timer.Stop()
		c.mu.Unlock()
		for range 2 {
			s.restart(orchestrator.TurnInterrupted, "")
			s.wantText("I have begun\n\n⏳ Run make\n----\n⚠️ Interrupted by a restart.\n[Run again]")
			if posts := s.chat.Visible(); len(posts[0].Buttons) > 0 {
				t.Errorf("the first message has the buttons %v", posts[0].Buttons)
			}
		}
	})
}

// If the turn is interrupted, all messages of its card lose their Stop buttons. The edits of the first one had failed.
func TestAnInterruptedCardOfManyMessagesHasNoStopButton(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = func(method string) bottest.Mishap {
			return map[bool]bottest.Mishap{true: bottest.ServerBroken, false: bottest.GoesWell}[method == "edit"]
		}
		c := s.newCard()
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
		time.Sleep(time.Second)
		_, text := paragraphs(200)
		c.Show(cli.TextDelta{Text: text})
		time.Sleep(time.Minute)
		if posts := s.chat.Visible(); len(posts) < 3 || len(posts[0].Buttons) == 0 {
			t.Fatalf("%d messages, the first with the buttons %v", len(posts), posts[0].Buttons)
		}
		s.chat.Mishaps = nil
		s.restart(orchestrator.TurnInterrupted, "")
		for i, p := range s.chat.Visible() {
			if strings.Contains(fmt.Sprint(p.Buttons), "Stop") {
				t.Errorf("message %d has the buttons %v", i, p.Buttons)
			}
		}
	})
}

func TestCardInterruptedBeforeAnythingWasShown(t *testing.T) {
	withRig(t, func(s *rig) {
		s.restart(orchestrator.TurnInterrupted, "")
		s.restart(orchestrator.TurnInterrupted, "")
		s.wantText("⚠️ Interrupted by a restart.\n[Run again]")
	})
}

// Ductor dies at every single write to the journal in turn. After the restart the answer is in the chat exactly once,
// or the chat says that it may be missing.
func TestCardSurvivesDeathAtEveryWrite(t *testing.T) {
	var answer strings.Builder
	for i := range 250 {
		fmt.Fprintf(&answer, "Paragraph %d says a little and ends.\n\n", i)
	}
	for at := 1; ; at++ {
		died := false
		withRig(t, func(s *rig) {
			s.journal.DiesAt = at
			s.chat.Mishaps = func(string) bottest.Mishap {
				if s.journal.DiesAt > 0 && s.journal.Dead() {
					return bottest.NotSent // a dead process makes no calls
				}
				return bottest.GoesWell
			}
			c := s.newCard()
			for part := range strings.SplitAfterSeq(answer.String(), "\n\n") {
				c.Show(cli.TextDelta{Text: part})
				time.Sleep(20 * time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := c.Finish(ctx, orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer.String()}); err == nil {
				return
			}
			died = true
			s.restart(orchestrator.TurnDone, answer.String())
			synctest.Wait()
			seen := make(map[string]int)
			told := false
			for _, p := range s.chat.Visible() {
				told = told || len(p.Buttons) > 0
				for line := range strings.SplitSeq(p.Text.Text, "\n\n") {
					seen[line]++
				}
			}
			for i := range 250 {
				line := fmt.Sprintf("Paragraph %d says a little and ends.", i)
				if n := seen[line]; n > 1 || n == 0 && !told {
					t.Errorf("death at write %d: paragraph %d is shown %d times", at, i, n)
				}
			}
		})
		if !died {
			break
		}
		if t.Failed() {
			return
		}
	}
}

// Near a limit of the plan, a running turn can go on later or with another account. A job cannot run a command of an
// agent, so a command can only go on with another account.
func TestOnlyAPromptCanRunLater(t *testing.T) {
	for task, want := range map[cli.Task]bool{cli.TaskPrompt: true, cli.TaskCommand: false, cli.TaskCompact: false} {
		withRig(t, func(s *rig) {
			s.turn.Wants.Task = task
			c := s.newCard()
			near := cli.AccountLimits{Limits: []cli.PlanLimit{{
				Window: cli.LimitWindow{Span: 5 * time.Hour}, Used: 0.95, Resets: time.Now().Add(time.Hour),
			}}}
			c.Show(cli.LimitsReported{AccountLimits: near, Others: []cli.Account{"work"}})
			c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "npm test"})
			synctest.Wait()
			buttons := fmt.Sprint(s.chat.Visible()[0].Buttons)
			if strings.Contains(buttons, string(orchestrator.ActionLater)) != want ||
				!strings.Contains(buttons, string(orchestrator.ActionAccount("work"))) {
				t.Errorf("%q: the buttons are %s", task, buttons)
			}
		})
	}
}

func TestCardBlankTextSpendsNothing(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "\n\n"})
		c.Show(cli.TextDelta{Text: "Hi"})
		s.wantText("Hi")
		s.finish(c, orchestrator.Outcome{Text: "\n\nHi"})
		if n := s.chat.Count(""); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestCardAnswersToThePromptInGroups(t *testing.T) {
	withRig(t, func(s *rig) {
		s.turn.Prompt.Conversation = orchestrator.ConversationID{Chat: -5}
		s.finish(s.newCard(), orchestrator.Outcome{Text: "Hi"})
		if p := s.chat.Visible()[0]; p.ReplyTo != 99 {
			t.Errorf("answers to %d", p.ReplyTo)
		}
	})
}

func TestCardThinkingIsShownWhenAsked(t *testing.T) {
	withRig(t, func(s *rig) {
		s.turn.Wants.Card.Think = orchestrator.ThinkOn
		c := s.newCard()
		c.Show(cli.ThinkingDelta{Text: "Let me see. "})
		c.Show(cli.ThinkingDelta{Text: strings.Repeat("Hm. ", 1000)})
		c.Show(cli.TextDelta{Text: "Yes."})
		s.finish(c, orchestrator.Outcome{Text: "Yes."})
		p := s.chat.Visible()[0]
		if !strings.HasPrefix(p.Text.Text, "Let me see. Hm.") || !strings.HasSuffix(p.Text.Text, "…\n\nYes.") {
			t.Errorf("the chat shows %q", p.Text.Text)
		}
		if es := p.Text.Entities; len(es) != 1 || es[0].Kind != render.Expandable {
			t.Errorf("entities %v", es)
		}
	})
}

// A button must not delay the commands after it while the chat is rate-limited.
func TestCardShowAgainDoesNotHoldUpItsCaller(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = func(string) bottest.Mishap { return bottest.LostBefore }
		s.finish(s.newCard(), orchestrator.Outcome{Text: "The answer."})
		s.chat.Mu.Lock()
		s.chat.Mishaps = nil
		s.chat.Mu.Unlock()
		silent := bottest.NewRecord().Fail("other", bottest.Limited(time.Hour))
		s.outbox.Go(context.Background(), outbox.Call{Chat: outbox.ChatOf(7), Run: silent}, nil)
		synctest.Wait()
		start := time.Now()
		for range 2 {
			if err := s.cards.ShowAgain(s.Context(), s.turn); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > showPatience {
			t.Errorf("the caller waited %s", took)
		}
		s.wantText("")
		time.Sleep(2 * time.Hour)
		s.wantText("The answer.")
	})
}

// cardToken is a bot token that an agent prints.
const cardToken = "123456:AAbb-Cc_Dd0123456789"

func TestCardMasksASecretThatTwoMessagesShare(t *testing.T) {
	withRig(t, func(s *rig) {
		s.cards.opts.Scrub = tgapi.NewScrubber(cardToken)
		text := strings.Repeat("x", render.FullMessage-10) + cardToken + strings.Repeat("y", 500)
		s.finish(s.newCard(), orchestrator.Outcome{Text: text})
		posts := s.chat.Visible()
		if len(posts) != 2 {
			t.Errorf("%d messages", len(posts))
		}
		for _, p := range posts {
			if strings.Contains(p.Text.Text, "AAbb") || strings.Contains(p.Text.Text, "0123") {
				t.Errorf("a part of the secret is in %q", p.Text.Text)
			}
		}
		for turn, data := range s.journal.Cards {
			if strings.Contains(string(data), "AAbb") {
				t.Errorf("the secret is stored with %s", turn)
			}
		}
	})
}

// Whatever the journal contains, showing or continuing it neither panics nor hangs.
func FuzzRedeliver(f *testing.F) {
	f.Add([]byte(`{"final":true,"first":0,"texts":[{"text":"a"}],"topic":0}`), 0, "sent", 1, int64(0))
	f.Add([]byte(`{"final":true,"first":-1,"texts":[{"text":"a"}]}`), 1<<20, "sending", 0, int64(0))
	f.Add([]byte(`{"first":3,"texts":[{"text":"a","entities":[{"Kind":"x","Offset":-4}]}]}`), -1, "unknown", -5, int64(5))
	f.Add([]byte(`{`), 5, "", 0, int64(0))
	f.Add([]byte(`{"first":1,"texts":[{"text":"a"}],"starts":[[0,0],[0,3]],"prints":["x"]}`), 1, "sending", 0, int64(5))
	f.Add([]byte(`{"first":1,"texts":[{"text":"a"}],"starts":[[0,0],[-3,99]],"prints":["x","y","z"]}`), 0, "unknown", 0, int64(1)<<62)
	f.Fuzz(func(t *testing.T, content []byte, part int, state string, id int, mark int64) {
		synctest.Test(t, func(t *testing.T) {
			s := newRig(t)
			s.chat.Unchecked = true
			s.journal.Cards["turn1"] = content
			left := func(turn cli.TurnID) {
				s.journal.Messages = []orchestrator.Message{{
					Key: fmt.Sprintf("card/%s/%d", turn, part), Turn: turn, State: orchestrator.SendState(state), ID: id, Mark: mark,
				}}
			}
			left("turn1")
			for _, turn := range []orchestrator.TurnState{orchestrator.TurnDone, orchestrator.TurnInterrupted} {
				s.turn.State = turn
				_ = s.cards.Redeliver(context.Background(), s.turn) // an error is a valid result too
			}
			s.turn.ID = "turn2"
			s.journal.Cards["turn2"] = content
			left("turn2")
			c := s.cards.Reopen(context.Background(), s.turn)
			c.Show(cli.TextDelta{Text: "Hello"})
			c.Show(cli.ToolStarted{ID: "1", Name: "Bash"})
			c.Show(cli.CaughtUp{})
			time.Sleep(5 * time.Second)
			_ = c.Finish(context.Background(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: "Hello"})
			s.close()
		})
	})
}

// A notice that could not be recorded is not sent again, however often the outcome is shown.
func TestANoticeIsSentOnce(t *testing.T) {
	withRig(t, func(s *rig) {
		s.chat.Mishaps = bottest.AtFirst(bottest.LostBefore)
		s.chat.Seen = func(t render.Text) { s.journal.Full.Store(strings.Contains(t.Text, "The connection broke")) }
		c := s.newCard()
		if err := c.Finish(s.Context(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: "Yes."}); err == nil {
			t.Error("nothing was wrong")
		}
		s.journal.Full.Store(false)
		s.finish(c, orchestrator.Outcome{Text: "Yes."})
		if n := len(s.chat.Visible()); n != 1 {
			t.Errorf("there are %d notices:\n%s", n, s.chat.Text())
		}
	})
}
