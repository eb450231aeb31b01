package card

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render/rendertest"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// simRig has cards on a simulated Telegram with the real client, under a fake clock.
type simRig struct {
	*testing.T
	srv    *telegram.Server
	outbox *outbox.Outbox
	cards  *Cards
	client *tgapi.Client
	turns  int
}

func withSimRig(t *testing.T, limits telegram.Limits, play func(s *simRig)) {
	t.Helper()
	withSimRigOf(t, telegram.Options{Limits: limits}, play)
}

func withSimRigOf(t *testing.T, server telegram.Options, play func(s *simRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := telegram.New(server)
		client, err := tgapi.NewClient(tgapi.ClientOptions{Token: srv.Token(), Transport: bottest.OnWire{Next: srv.Client().Transport}})
		if err != nil {
			t.Fatal(err)
		}
		out := outbox.New(outbox.Options{Trouble: tgapi.TroubleOf})
		o := over(client, out, bottest.NewJournal())
		o.Look = func() Look { return Look{Pacing: houseRules(), Footer: []FooterField{FooterModel}} }
		play(&simRig{T: t, srv: srv, outbox: out, cards: New(o), client: client})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := out.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (s *simRig) chat(id int64) *telegram.Chat {
	c := s.srv.Private(telegram.UserID(id), "Anna")
	c.Person().Send(c, "go")
	return c
}

func (s *simRig) open(c *telegram.Chat, topic int) orchestrator.Card {
	s.turns++
	id := int64(c.ID())
	return s.cards.Open(orchestrator.Turn{
		ID:     cli.TurnID(fmt.Sprint(s.turns)),
		Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: id, Topic: topic}, Message: 1},
	})
}

func (s *simRig) finish(c orchestrator.Card, text string) {
	s.Helper()
	err := c.Finish(context.Background(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: text, Model: "opus"})
	if err != nil {
		s.Error(err)
	}
}

// valid checks every version of every message, and that none was deleted.
func (s *simRig) valid(c *telegram.Chat) {
	s.Helper()
	for _, m := range c.History() {
		if m.From.Bot && m.Deleted {
			s.Errorf("message %d was deleted", m.ID)
		}
		for _, v := range m.Versions {
			var entities []rendertest.Entity
			for _, e := range v.Entities {
				entities = append(entities, rendertest.Entity{Kind: e.Type, Offset: e.Offset, Length: e.Length,
					URL: e.URL, Language: e.Language})
			}
			if err := rendertest.Check(v.Text, entities); m.From.Bot && err != nil {
				s.Errorf("message %d was %q: %v", m.ID, v.Text, err)
			}
		}
	}
}

// An answer with 20 tool calls and a limit of one call a second. The answers of the measured peers never arrive.
func TestCardWithTwentyToolsUnderStrictLimits(t *testing.T) {
	withSimRig(t, telegram.StrictLimits(), func(s *simRig) {
		chat := s.chat(7)
		c := s.open(chat, 0)
		var answer strings.Builder
		for i := range 20 {
			text := fmt.Sprintf("Step **%d** of the work.\n\n", i)
			answer.WriteString(text)
			c.Show(cli.TextDelta{Text: text})
			id := fmt.Sprint(i)
			c.Show(cli.ToolStarted{ID: cli.ToolID(id), Name: "Bash", Title: "make step" + id})
			time.Sleep(200 * time.Millisecond)
			c.Show(ended(id, 0))
		}
		s.finish(c, answer.String())
		last, _ := chat.View().Last()
		for i := range 20 {
			want := fmt.Sprintf("Step %d of the work.\n\n✓ Run make step%d · 1.2 s", i, i)
			if !strings.Contains(last.Text, want) {
				t.Errorf("%q is missing in\n%s", want, last.Text)
			}
		}
		if n := len(chat.View().FromBot()); n != 1 {
			t.Errorf("%d messages", n)
		}
		if refused := s.srv.Calls(telegram.Failed); len(refused) > 0 {
			t.Errorf("%d calls were refused, the first: %+v", len(refused), refused[0])
		}
		s.valid(chat)
	})
}

// Twenty chats, including five topics of a group, stream at once. None waits for another, and none reaches a limit.
func TestCardsInTwentyChatsAtOnce(t *testing.T) {
	withSimRig(t, telegram.RealLimits(), func(s *simRig) {
		forum := s.srv.Forum(-1000, "Work")
		var cards []orchestrator.Card
		var chats []*telegram.Chat
		for i := range 15 {
			chats = append(chats, s.chat(int64(100+i)))
			cards = append(cards, s.open(chats[i], 0))
		}
		for range 5 {
			chats = append(chats, forum)
			cards = append(cards, s.open(forum, 0))
		}
		for range 100 {
			for _, c := range cards {
				c.Show(cli.TextDelta{Text: "twenty characters.. "})
			}
			time.Sleep(50 * time.Millisecond)
		}
		whole := strings.Repeat("twenty characters.. ", 100)
		done := make(chan struct{})
		for _, c := range cards {
			go func() {
				s.finish(c, whole)
				done <- struct{}{}
			}()
		}
		for range cards {
			<-done
		}
		for i, chat := range chats {
			want := strings.TrimSpace(whole) + "\n\nopus"
			if _, ok := chat.View().Find(want); !ok {
				last, _ := chat.View().Last()
				t.Errorf("chat %d shows %q", i, last.Text)
			}
			s.valid(chat)
		}
		if refused := s.srv.Calls(telegram.Failed); len(refused) > 0 {
			t.Errorf("%d calls were refused, the first: %+v", len(refused), refused[0])
		}
	})
}

// Each call of a turn in turn meets a mishap of a real connection. The answer is in the chat once, or a notice is.
func TestCardUnderEveryMishapAtEveryCall(t *testing.T) {
	for _, kind := range []telegram.FaultKind{
		telegram.DropBefore, telegram.DropAfter, telegram.BadGateway, telegram.BadGatewayAfter,
		telegram.ServerError, telegram.TooMany, telegram.BadJSON, telegram.Hang,
	} {
		for at := range 6 {
			withSimRig(t, telegram.Limits{}, func(s *simRig) {
				chat := s.chat(7)
				hit := s.srv.Inject(telegram.Fault{Kind: kind, Skip: at, RetryAfter: 2})
				c := s.open(chat, 0)
				var answer strings.Builder
				for i := range 120 {
					text := fmt.Sprintf("Sentence number %d of the answer, which is long enough to need two messages.\n\n", i)
					answer.WriteString(text)
					c.Show(cli.TextDelta{Text: text})
					time.Sleep(30 * time.Millisecond)
				}
				s.finish(c, answer.String())
				var shown strings.Builder
				told := false
				for _, m := range chat.View().FromBot() {
					told = told || m.HasButton("Show again")
					shown.WriteString(m.Text + "\n")
				}
				for i := range 120 {
					n := strings.Count(shown.String(), fmt.Sprintf("Sentence number %d of", i))
					if n > 1 || n == 0 && !told {
						t.Fatalf("%s at call %d: sentence %d is shown %d times", kind, at, i, n)
					}
				}
				if hit.Hits() != 1 {
					t.Errorf("%s at call %d struck %d times", kind, at, hit.Hits())
				}
			})
		}
	}
}

func TestCardGoesOnInGeneralWhenItsTopicIsGone(t *testing.T) {
	withSimRig(t, telegram.Limits{}, func(s *simRig) {
		forum := s.srv.Forum(-1000, "Work")
		c := s.open(forum, 77) // never created
		c.Show(cli.TextDelta{Text: "Hello"})
		time.Sleep(time.Second)
		s.finish(c, "Hello.")
		last, _ := forum.View().Last()
		if want := "(The topic is gone, so this comes here.)\n\nHello.\n\nopus"; last.Text != want || last.Topic != 0 {
			t.Errorf("topic %d shows %q", last.Topic, last.Text)
		}
	})
}

// After a group became a supergroup, all requests of its cards share the pause that Telegram demands.
func TestCardPausesInTheSupergroupThatItsGroupBecame(t *testing.T) {
	withSimRig(t, telegram.Limits{}, func(s *simRig) {
		group := s.srv.Group(-5, "Work")
		c := s.open(group, 0)
		c.Show(cli.TextDelta{Text: "One."})
		time.Sleep(5 * time.Second)
		now := group.Upgrade(-1005, s.srv.Person(9, "Anna"))
		c.Show(cli.TextDelta{Text: " Two."})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if last, _ := now.View().Last(); !strings.HasPrefix(last.Text, "One. Two.") {
			t.Fatalf("the supergroup shows %q", last.Text)
		}
		limit := s.srv.Inject(telegram.Fault{Method: "editMessageText", Kind: telegram.TooMany, RetryAfter: 60})
		c.Show(cli.TextDelta{Text: " Three."})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if limit.Hits() != 1 {
			t.Fatalf("%d edits were limited", limit.Hits())
		}
		before := len(s.srv.Calls(telegram.Methods("sendChatAction")))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := len(s.srv.Calls(telegram.Methods("sendChatAction"))) - before; n > 0 {
			t.Errorf("%d typing indicators in the pause", n)
		}
		s.finish(c, "One. Two. Three.")
		if last, _ := now.View().Last(); last.Text != "One. Two. Three.\n\nopus" {
			t.Errorf("in the end %q", last.Text)
		}
	})
}

func TestCardDeletedByAPersonComesBackOnce(t *testing.T) {
	withSimRig(t, telegram.Limits{}, func(s *simRig) {
		chat := s.chat(7)
		c := s.open(chat, 0)
		for i := range 3 {
			c.Show(cli.TextDelta{Text: fmt.Sprintf("Part %d is here for you. ", i)})
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if last, ok := chat.View().Last(); ok && last.From.Bot {
				chat.Person().Delete(last)
			}
		}
		s.finish(c, "Part 0 is here for you. Part 1 is here for you. Part 2 is here for you. ")
		if n := len(s.srv.Calls(telegram.Methods("sendMessage"))); n != 2 {
			t.Errorf("%d sends, want the first and one more", n)
		}
	})
}
