package card

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
)

// inDrafts runs play with a simRig in which plain answers grow as drafts.
func inDrafts(t *testing.T, limits telegram.Limits, play func(s *simRig, chat *telegram.Chat)) {
	t.Helper()
	inDraftsOf(t, telegram.Options{Limits: limits}, play)
}

func inDraftsOf(t *testing.T, server telegram.Options, play func(s *simRig, chat *telegram.Chat)) {
	t.Helper()
	withSimRigOf(t, server, func(s *simRig) {
		s.cards.opts.Draft = s.client.Draft
		s.cards.restyle(func(l *Look) { l.Mode = ModeDraft })
		play(s, s.chat(7))
	})
}

// drafts lists the texts that the chat showed as drafts.
func (s *simRig) drafts() (texts []string) {
	for _, c := range s.srv.Calls(telegram.Methods("sendMessageDraft"), telegram.Succeeded) {
		texts = append(texts, c.Params["text"])
	}
	return texts
}

func TestAnAnswerGrowsAsADraftAndBecomesOneMessage(t *testing.T) {
	inDrafts(t, telegram.Limits{}, func(s *simRig, chat *telegram.Chat) {
		c := s.open(chat, 0)
		var answer string
		for range 12 { // fewer than the chat's burst
			answer += "some more words. "
			c.Show(cli.TextDelta{Text: "some more words. "})
			time.Sleep(draftInterval)
			synctest.Wait()
			if v := chat.View(); len(v.Drafts) != 1 || v.Drafts[0].Text != strings.TrimSpace(answer) || !v.Drafts[0].CanStop {
				t.Errorf("%v after a delta the drafts are %+v", draftInterval, v.Drafts)
			}
		}
		if n := len(chat.View().FromBot()); n != 0 {
			t.Errorf("%d messages while the answer is a draft", n)
		}
		s.finish(c, answer)
		v := chat.View()
		if all := v.FromBot(); len(all) != 1 || len(all[0].Versions) != 1 || all[0].Text != strings.TrimSpace(answer)+"\n\nopus" {
			t.Errorf("the messages are %+v", all)
		}
		if len(v.Drafts) != 0 {
			t.Errorf("the drafts %+v are left", v.Drafts)
		}
		var ids []string
		for _, call := range s.srv.Calls(telegram.Methods("sendMessageDraft")) {
			if id := call.Params["draft_id"]; len(ids) == 0 || ids[len(ids)-1] != id {
				ids = append(ids, id)
			}
		}
		if len(ids) != 1 || ids[0] == "0" {
			t.Errorf("one answer has the drafts %v", ids)
		}
	})
}

// A draft fades after 30 s. While a tool runs for long and adds nothing, the draft is sent again before that.
func TestADraftDoesNotFadeWhileATurnRuns(t *testing.T) {
	inDrafts(t, telegram.RealLimits(), func(s *simRig, chat *telegram.Chat) {
		c := s.open(chat, 0)
		c.Show(cli.TextDelta{Text: "I look."})
		for range 100 {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if v := chat.View(); len(v.Drafts) != 1 || !strings.HasPrefix(v.Drafts[0].Text, "I look.") {
				t.Errorf("the drafts are %+v", v.Drafts)
			}
		}
		s.finish(c, "I look.")
	})
}

// While drafts fail, the pauses between the attempts grow, even if the last draft that the chat showed has faded.
func TestAFadedDraftThatFailsIsRepeatedMoreAndMoreSlowly(t *testing.T) {
	inDrafts(t, telegram.Limits{}, func(s *simRig, chat *telegram.Chat) {
		c := s.open(chat, 0)
		c.Show(cli.TextDelta{Text: "I look."})
		time.Sleep(time.Second)
		fault := s.srv.Inject(telegram.Fault{Method: "sendMessageDraft", Kind: telegram.BadGateway, Times: 10_000})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := fault.Hits(); n < 5 || n > 25 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		fault.Remove()
		time.Sleep(2 * slowestRetry)
		synctest.Wait()
		if v := chat.View(); len(v.Drafts) != 1 {
			t.Errorf("the drafts are %+v", v.Drafts)
		}
		s.finish(c, "I look.")
	})
}

// A turn can wait for its user for longer than a draft is shown. So the text until then becomes a message, and stays
// one.
func TestADraftBecomesAMessageWhenTheTurnWaitsForItsUser(t *testing.T) {
	inDrafts(t, telegram.Limits{}, func(s *simRig, chat *telegram.Chat) {
		c := s.open(chat, 0)
		c.Show(cli.TextDelta{Text: "May I?"})
		time.Sleep(time.Second)
		c.Show(cli.QuestionAsked{})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		first := chat.View().FromBot()
		if len(first) != 1 || !strings.HasPrefix(first[0].Text, "May I?") {
			t.Errorf("the messages are %+v", first)
		}
		before := len(s.drafts())
		c.Show(cli.TextDelta{Text: " Thanks."})
		time.Sleep(5 * time.Second)
		s.finish(c, "May I? Thanks.")
		if all := chat.View().FromBot(); len(all) != 1 || all[0].ID != first[0].ID || !strings.HasPrefix(all[0].Text, "May I? Thanks.") {
			t.Errorf("the messages are %+v", all)
		}
		if n := len(s.drafts()); n != before {
			t.Errorf("%d drafts of an answer that is a message", n-before)
		}
	})
}

// All messages of a long answer except the newest are real ones.
func TestALongAnswerIsMessagesAndADraft(t *testing.T) {
	inDrafts(t, telegram.Limits{}, func(s *simRig, chat *telegram.Chat) {
		c := s.open(chat, 0)
		var answer strings.Builder
		for range 120 {
			const text = "A sentence of the answer, which is long enough to need two messages.\n\n"
			answer.WriteString(text)
			c.Show(cli.TextDelta{Text: text})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second) // spend the chat's budget
		synctest.Wait()
		v := chat.View()
		if len(v.FromBot()) != 2 || len(v.Drafts) != 1 {
			t.Errorf("%d messages and the drafts %+v", len(v.FromBot()), v.Drafts)
		}
		s.finish(c, answer.String())
		if v := chat.View(); len(v.FromBot()) != 3 || len(v.Drafts) != 0 {
			t.Errorf("in the end %d messages and the drafts %+v", len(v.FromBot()), v.Drafts)
		}
		s.valid(chat)
	})
}

// If a server rejects drafts, this answer and the next are messages that grow by edits.
func TestAChatWithoutDraftsGetsMessagesThatGrow(t *testing.T) {
	inDraftsOf(t, telegram.Options{Without: []string{"sendMessageDraft"}}, func(s *simRig, chat *telegram.Chat) {
		for i := range 2 {
			c := s.open(chat, 0)
			for range 10 {
				c.Show(cli.TextDelta{Text: "Some words of an answer. "})
				time.Sleep(time.Second)
			}
			synctest.Wait()
			if all := chat.View().FromBot(); len(all) != i+1 || len(all[i].Versions) < 3 {
				t.Errorf("answer %d is shown as %+v", i, all)
			}
			s.finish(c, "Some words of an answer.")
		}
		if n := len(s.srv.Calls(telegram.Methods("sendMessageDraft"))); n != 1 {
			t.Errorf("%d drafts were tried", n)
		}
	})
}

// Groups have no drafts.
func TestAGroupGetsNoDrafts(t *testing.T) {
	inDrafts(t, telegram.Limits{}, func(s *simRig, _ *telegram.Chat) {
		forum := s.srv.Forum(-1000, "Work")
		c := s.open(forum, 0)
		c.Show(cli.TextDelta{Text: "Hello there, all of you."})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(s.srv.Calls(telegram.Methods("sendMessageDraft"))) > 0 || len(forum.View().FromBot()) != 1 {
			t.Errorf("the group shows %+v", forum.View().FromBot())
		}
		s.finish(c, "Hello there, all of you.")
	})
}
