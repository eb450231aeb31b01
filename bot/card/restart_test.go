package card

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// killer is a transport whose process dies at one of its requests: before it is sent, or after it arrived and before
// the process has the response.
type killer struct {
	next    http.RoundTripper
	journal *bottest.Journal
	after   bool

	mu   sync.Mutex
	left int // requests until death; 0 for immortal, negative for dead
}

func (g *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	if g.left < 0 {
		g.mu.Unlock()
		return nil, errors.New("ductor is dead")
	}
	falls := g.left == 1
	if g.left--; falls {
		g.left = -1
		g.journal.Mu.Lock()
		g.journal.DiesAt = 1
		g.journal.Mu.Unlock()
	} else if g.left < 0 {
		g.left = 0
	}
	g.mu.Unlock()
	if falls && !g.after {
		return nil, errors.New("ductor is dead")
	}
	res, err := g.next.RoundTrip(r)
	if falls && err == nil {
		_ = res.Body.Close()
		return nil, errors.New("ductor is dead")
	}
	return res, err
}

func (g *killer) dead() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left < 0
}

func (s *simRig) ductor(g *killer) {
	client, err := tgapi.NewClient(tgapi.ClientOptions{Token: s.srv.Token(), Transport: bottest.OnWire{Next: g}})
	if err != nil {
		s.Fatal(err)
	}
	s.outbox = outbox.New(outbox.Options{Trouble: tgapi.TroubleOf})
	o := over(client, s.outbox, g.journal)
	o.Look = func() Look { return Look{Pacing: houseRules(), Footer: []FooterField{FooterModel}} }
	s.cards = New(o)
}

// longTurn returns a turn with text and tools that needs two messages.
func longTurn() (events []cli.Event, answer string) {
	var b strings.Builder
	for i := range 100 {
		text := fmt.Sprintf("Sentence number %d of the answer, which is long enough to need two messages.\n\n", i)
		b.WriteString(text)
		events = append(events, cli.TextDelta{Text: text})
		if i%20 == 10 {
			id := fmt.Sprint(i)
			events = append(events, cli.ToolStarted{ID: cli.ToolID(id), Name: "Bash", Title: "make " + id}, ended(id, 0))
		}
	}
	return events, b.String()
}

// Ductor dies at every single call of a turn, before or after it arrives at Telegram. The next process replays the
// turn. The chat then shows every sentence once and in place, in two messages, and none was deleted. Only a message
// that was being sent may be missing; the chat then has a notice and a button to show it.
func TestCardSurvivesDeathAtEveryCallWhileTheTurnGoesOn(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			died := true
			withSimRig(t, telegram.RealLimits(), func(s *simRig) { died = dieAndGoOn(s, at, after) })
			if t.Failed() {
				t.Fatalf("at call %d, after it arrived: %v", at, after)
			}
			if !died {
				if at < 5 {
					t.Errorf("a turn has only %d calls", at-1)
				}
				break
			}
		}
	}
}

func dieAndGoOn(s *simRig, at int, after bool) (died bool) {
	closeOutbox(s)
	g := &killer{next: s.srv.Client().Transport, journal: bottest.NewJournal(), after: after, left: at}
	s.ductor(g)
	chat := s.chat(7)
	turn := orchestrator.Turn{ID: "t", Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 7}, Message: 1}}
	events, answer := longTurn()
	card := s.cards.Open(turn)
	for i, ev := range events {
		if g.dead() && !died {
			died = true
			closeOutbox(s)
			synctest.Wait()
			g.journal.DiesAt, g.left = 0, 0
			s.ductor(g)
			time.Sleep(5 * time.Second)
			card = s.cards.Reopen(context.Background(), turn)
			for _, past := range events[:i] {
				card.Show(past)
			}
			card.Show(cli.CaughtUp{})
		}
		card.Show(ev)
		time.Sleep(70 * time.Millisecond)
	}
	if g.dead() || !died {
		return false // it lived until the end
	}
	s.finish(card, answer)
	s.valid(chat)
	var all []string
	told := false
	for _, m := range chat.View().FromBot() {
		told = told || m.HasButton("Show again")
		all = append(all, m.Text)
	}
	shown := strings.Join(all, "\n")
	last := -1
	for i := range 100 {
		sentence := fmt.Sprintf("Sentence number %d of", i)
		n, where := strings.Count(shown, sentence), strings.Index(shown, sentence)
		if n > 1 || n == 0 && !told || n == 1 && where < last {
			s.Errorf("sentence %d is shown %d times, at %d after %d; told %v", i, n, where, last, told)
			return true
		}
		last = max(last, where)
	}
	if n := strings.Count(shown, "✓ Run make"); n != 5 && !told {
		s.Errorf("%d tools are shown", n)
	}
	// one may have died with its process
	if n := len(s.srv.Calls(telegram.Methods("sendMessage"))); !told && n > len(all)+1 {
		s.Errorf("%d sends for %d messages", n, len(all))
	}
	return true
}

func closeOutbox(s *simRig) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.outbox.Drain(dead) // waiting calls are never sent
}
