package message

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/orchestrator"
)

// producer makes one message show its content over several processes.
type producer struct {
	chat    *bottest.Chat
	journal *bottest.Journal

	out     *outbox.Outbox
	message *Message

	mu   sync.Mutex
	want Content
}

// begin starts a process, which continues with the message.
func (p *producer) begin() {
	p.out = bottest.NewOutbox()
	p.message = New(p.out, p.chat, p.journal, nil, slog.New(slog.DiscardHandler)).Open(Spec{
		Key: "m", To: orchestrator.ConversationID{Chat: 1}, Content: func(context.Context) (Content, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.want, nil
		},
	})
}

func (p *producer) show(text string) { p.wants(Content{Text: render.Plain(text)}) }

func (p *producer) wants(c Content) {
	p.mu.Lock()
	p.want = c
	p.mu.Unlock()
	p.message.Update(outbox.Awaited)
}

// restart kills the process and starts the next one.
func (p *producer) restart() {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.out.Drain(dead)
	synctest.Wait()
	p.journal.Mu.Lock()
	p.journal.DiesAt = 0
	p.journal.Mu.Unlock()
	p.begin()
	p.message.Update(outbox.Awaited)
}

// check checks the message once everything is quiet: the chat has at most one, which shows the wanted content unless it
// is unknown whether the message arrived.
func (p *producer) check(t bottest.Failer) {
	p.chat.Mu.Lock()
	p.chat.Mishaps = nil
	p.chat.Mu.Unlock()
	p.message.Update(outbox.Awaited)
	time.Sleep(time.Hour)
	synctest.Wait()
	posts, state := p.chat.Visible(), p.message.State()
	switch goes := p.want.Lifecycle == DeleteWhenDone; {
	case len(posts) > 1:
		t.Errorf("the chat shows %d messages:\n%s", len(posts), p.chat.Text())
	case state == orchestrator.Unknown, p.want.Lifecycle == EditOnly && len(posts) == 0:
	case goes && len(posts) > 0, !goes && (len(posts) == 0 || posts[0].Text.Text != p.want.Text.Text):
		t.Errorf("the message is %s and the chat shows %q, not %+v", state, p.chat.Text(), p.want)
	}
	row, _ := p.journal.FindMessage(context.Background(), "m")
	if row.State != "" && row.State != orchestrator.Sending && row.State != state {
		t.Errorf("the journal says that the message is %s, and it is %s", row.State, state)
	}
	if end := row.Mark == orchestrator.EndShown; state == orchestrator.Sent && end != (p.want.Lifecycle == EditOnly) {
		t.Errorf("the journal says that the message shows its end: %v; it shows %+v", end, p.want)
	}
}

// Whatever content a producer wants, whatever Telegram answers and whenever ductor is killed: in the end one message in
// the chat shows the last wanted content. A message with an unknown outcome is not sent again.
func TestLawAMessageEndsUpShowingWhatIsWanted(t *testing.T) {
	fates := []bottest.Mishap{bottest.GoesWell, bottest.GoesWell, bottest.RateLimited, bottest.ServerBroken, bottest.NotSent,
		bottest.LostBefore, bottest.LostAfter, bottest.RefusedOnce}
	rapid.Check(t, func(rt *rapid.T) {
		bottest.InBubble(t, func(t *testing.T) {
			p := &producer{chat: bottest.NewChat(rt), journal: bottest.NewJournal(), want: Content{Lifecycle: EditOnly}}
			p.chat.Delay = time.Duration(rapid.IntRange(0, 700).Draw(rt, "slow")) * time.Millisecond
			// drawn before the calls, which run on other goroutines
			next := rapid.SliceOfN(rapid.SampledFrom(fates), 0, 12).Draw(rt, "fates")
			refused := false // a second refusal is final, as is that of a deletion without a text
			p.chat.Mishaps = func(method string) bottest.Mishap {
				switch {
				case p.journal.Dead():
					return bottest.NotSent // a dead process makes no calls
				case len(next) == 0:
					return bottest.GoesWell
				}
				f := next[0]
				next = next[1:]
				if f == bottest.RefusedOnce && (refused || method == "delete") {
					return bottest.GoesWell
				}
				refused = refused || f == bottest.RefusedOnce
				return f
			}
			p.begin()
			for i := range rapid.IntRange(1, 8).Draw(rt, "steps") {
				switch rapid.IntRange(0, 4).Draw(rt, "step") {
				case 0:
					p.restart()
				case 1:
					p.journal.Mu.Lock()
					p.journal.DiesAt = p.journal.Writes + rapid.IntRange(1, 3).Draw(rt, "write")
					p.journal.Mu.Unlock()
					p.show(fmt.Sprint("before its death ", i))
					time.Sleep(time.Second)
					p.restart()
				default:
					p.show(fmt.Sprint("wanted ", i))
				}
				time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "pause")) * time.Millisecond)
			}
			switch rapid.IntRange(0, 3).Draw(rt, "end") {
			case 0:
				p.wants(Content{Lifecycle: DeleteWhenDone})
			case 1:
				p.wants(Content{Text: render.Plain("the end"), Lifecycle: EditOnly})
			}
			p.check(rt)
			_ = p.out.Drain(context.Background())
		})
	})
}

// Ductor dies at every write in turn. The message is in the chat once, or its outcome is unknown.
func TestAMessageSurvivesDeathAtEveryWrite(t *testing.T) {
	for at, died := 1, true; died && !t.Failed(); at++ {
		synctest.Test(t, func(t *testing.T) {
			p := &producer{chat: bottest.NewChat(t), journal: bottest.NewJournal()}
			p.journal.DiesAt = at
			p.chat.Mishaps = func(string) bottest.Mishap {
				if p.journal.Dead() {
					return bottest.NotSent // a dead process makes no calls
				}
				return bottest.GoesWell
			}
			p.begin()
			p.show("one")
			synctest.Wait()
			p.show("two")
			synctest.Wait()
			p.wants(Content{Lifecycle: DeleteWhenDone})
			synctest.Wait()
			if died = p.journal.Dead(); died {
				p.restart()
			}
			p.check(t)
			_ = p.out.Drain(context.Background())
		})
	}
}
