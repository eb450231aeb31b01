package card

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// life is one ductor's part in the life of a card.
type life struct {
	*stage
	card orchestrator.Card
	told []cli.Event // since the turn began
}

func (l *life) show(evs ...cli.Event) {
	for _, ev := range evs {
		l.told = append(l.told, ev)
		l.card.Show(ev)
	}
}

// kill ends this ductor without a word: what waits is never sent, and nothing more is stored.
func (l *life) kill() {
	l.shelf.Mu.Lock()
	l.shelf.DiesAt = max(l.shelf.Writes, 1)
	l.shelf.Mu.Unlock()
	l.wall.Mu.Lock()
	l.wall.Lost += l.wall.Sending
	l.wall.Mu.Unlock()
	l.bury()
}

// reopen goes on in a new ductor, which is told again all that has happened.
func (l *life) reopen(meanwhile ...cli.Event) {
	l.told = append(l.told, meanwhile...)
	l.card = l.cards.Reopen(context.Background(), l.turn)
	for _, ev := range l.told {
		l.card.Show(ev)
	}
	l.card.Show(cli.CaughtUp{})
}

func inLife(t *testing.T, play func(l *life)) {
	t.Helper()
	onStage(t, func(s *stage) { play(&life{stage: s, card: s.cards.Open(s.turn)}) })
}

func TestReopenedCardGoesOnInItsMessage(t *testing.T) {
	for name, end := range map[string]func(l *life){
		"killed": (*life).kill,
		"left":   func(l *life) { l.card.Leave(context.Background()); l.bury() },
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(l *life) {
				l.show(cli.TextDelta{Text: "I look.\n\n"}, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
				time.Sleep(3 * time.Second)
				l.wantText("I look.\n\n⏳ Run make")
				end(l)
				time.Sleep(10 * time.Second)
				before := l.wall.Count("")
				l.reopen(ended("1", 0), cli.TextDelta{Text: "It *works*."})
				l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works.")
				if n := l.wall.Count("") - before; n != 1 {
					t.Errorf("catching up took %d calls", n)
				}
				l.show(cli.TextDelta{Text: " Indeed."})
				time.Sleep(2 * time.Second)
				l.finish(l.card, orchestrator.Outcome{Text: "I look.\n\nIt *works*. Indeed."})
				l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works. Indeed.")
				if n := l.wall.Count("send"); n != 1 {
					t.Errorf("%d messages were sent", n)
				}
			})
		})
	}
}

func TestReopenedCardSaysNothingUntilItHasCaughtUp(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: "One two three"})
		time.Sleep(time.Second)
		l.kill()
		l.card = l.cards.Reopen(context.Background(), l.turn)
		l.card.Show(cli.TextDelta{Text: "One"})
		time.Sleep(1900 * time.Millisecond)
		l.wantText("One two three")
		l.card.Show(cli.TextDelta{Text: " two three four"})
		time.Sleep(1900 * time.Millisecond)
		l.wantText("One two three")
		time.Sleep(200 * time.Millisecond) // two seconds of silence: nothing more is told again
		l.wantText("One two three four")
		if l.wall.Count("typing") == 0 {
			t.Error("no typing was shown")
		}
		l.finish(l.card, orchestrator.Outcome{Text: "One two three four"})
	})
}

func TestReopenedCardWaitsNoLongerThanFiveSeconds(t *testing.T) {
	inLife(t, func(l *life) {
		l.kill()
		l.card = l.cards.Reopen(context.Background(), l.turn)
		for range 49 {
			l.card.Show(cli.TextDelta{Text: "a"})
			time.Sleep(100 * time.Millisecond)
		}
		l.wantText("")
		time.Sleep(200 * time.Millisecond)
		l.wantText(strings.Repeat("a", 49))
		l.finish(l.card, orchestrator.Outcome{Text: strings.Repeat("a", 49)})
	})
}

// What an earlier ductor had not begun to send is sent; the card is not empty because it might have been.
func TestReopenedCardThatHadShownNothing(t *testing.T) {
	inLife(t, func(l *life) {
		l.kill()
		l.reopen(cli.TextDelta{Text: "Here."})
		l.wantText("Here.")
		l.finish(l.card, orchestrator.Outcome{Text: "Here."})
		l.wantText("Here.")
	})
}

// dieSending ends this ductor while it sends the beginning of an answer.
func (l *life) dieSending(text string, fate bottest.Mishap) {
	l.wall.Mishaps = func(string) bottest.Mishap { l.shelf.DiesAt = l.shelf.Writes; return fate }
	l.show(cli.TextDelta{Text: text})
	synctest.Wait()
	l.wall.Mishaps = nil
	l.bury()
}

// A message that was on its way when ductor died may or may not be there. It is not sent again; the card
// goes on behind it, and offers to show what it had.
func TestReopenedCardGoesOnBehindAMessageOfUnknownFate(t *testing.T) {
	notice := "⚠️ The connection broke while a message of this answer was on its way, so a part of it may be missing.\n[Show again]"
	for f, begins := range map[bottest.Mishap]string{bottest.LostAfter: "Hello \n----\n", bottest.LostBefore: ""} {
		t.Run(string(f), func(t *testing.T) {
			inLife(t, func(l *life) {
				l.dieSending("Hello ", f)
				begins := strings.Replace(begins, "Hello ", "Hello", 1)
				l.reopen(cli.TextDelta{Text: "there"})
				l.wantText(begins + "there")
				l.show(cli.TextDelta{Text: ", Anna"})
				time.Sleep(time.Second)
				l.wantText(begins + "there, Anna")
				l.finish(l.card, orchestrator.Outcome{Text: "Hello there, Anna."})
				l.wantText(begins + "there, Anna.\n----\n" + notice)
				if err := l.cards.ShowAgain(context.Background(), l.turn); err != nil {
					t.Error(err)
				}
				l.wantText(begins + "there, Anna.\n----\n" + notice + "\n----\nHello\n----\nthere, Anna.")
			})
		})
	}
}

// A word that was cut in two by the end of a message of unknown fate is written anew in the next one; and when the
// answer is shown again it is in order and whole, with no word in pieces.
func TestAMessageOfUnknownFateCutsNoWord(t *testing.T) {
	inLife(t, func(l *life) {
		l.dieSending("One two thr", bottest.LostBefore)
		answer := "One two three " + strings.Repeat("and so on ", 500) + "to the end."
		l.reopen(cli.TextDelta{Text: strings.TrimPrefix(answer, "One two thr")})
		time.Sleep(10 * time.Second)
		l.finish(l.card, orchestrator.Outcome{Text: answer})
		if text := l.wall.Text(); !strings.HasPrefix(text, "three and so on") {
			t.Errorf("it goes on with %.40q", text)
		}
		from := len(l.wall.Visible())
		if err := l.cards.ShowAgain(context.Background(), l.turn); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		var again []string
		for _, p := range l.wall.Visible()[from:] {
			again = append(again, strings.Fields(p.Text.Text)...)
		}
		if got := strings.Join(again, " "); got != answer {
			t.Errorf("shown again is %d messages, %.40q … %q", len(l.wall.Visible())-from, got, got[max(len(got)-40, 0):])
		}
	})
}

// Of many messages only those that differ are edited.
func TestReopenedCardEditsOnlyWhatDiffers(t *testing.T) {
	inLife(t, func(l *life) {
		var answer strings.Builder
		l.show(cli.ToolStarted{ID: "slow", Name: "Bash", Title: "make world"})
		for i := range 400 {
			text := fmt.Sprintf("Paragraph %d says a little and ends.\n\n", i)
			answer.WriteString(text)
			l.show(cli.TextDelta{Text: text})
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		before := l.wall.Visible()
		l.kill()
		calls := l.wall.Count("edit")
		l.reopen(ended("slow", 0))
		time.Sleep(8 * time.Second) // not so long that the line tells how long the agent thinks
		after := l.wall.Visible()
		if len(before) < 4 || len(after) != len(before) {
			t.Fatalf("%d messages, and %d after the restart", len(before), len(after))
		}
		for i := 1; i+1 < len(after); i++ {
			if after[i].Edits != before[i].Edits {
				t.Errorf("message %d was edited", i)
			}
		}
		// The first for the tool, and the newest: once, and once more to say that the agent thinks.
		if n := l.wall.Count("edit") - calls; n > 3 || !strings.HasPrefix(after[0].Text.Text, "✓ Run make world") {
			t.Errorf("%d edits; the first message begins %.40q", n, after[0].Text.Text)
		}
		// A change that is undone is a change: what is stored about a message is never older than the message.
		l.kill()
		l.told = slices.DeleteFunc(l.told, func(ev cli.Event) bool { _, ok := ev.(cli.ToolEnded); return ok })
		l.reopen()
		time.Sleep(5 * time.Second)
		if text := l.wall.Visible()[0].Text.Text; !strings.HasPrefix(text, "⏳ Run make world") {
			t.Errorf("the first message begins %.40q", text)
		}
		l.finish(l.card, orchestrator.Outcome{Text: answer.String()})
	})
}

func TestReopenedCardShowsThatOutputWasLost(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: strings.Repeat("All that was said before. ", 300)})
		time.Sleep(5 * time.Second)
		l.kill()
		l.told = []cli.Event{cli.Status{Kind: cli.StatusWarning, Detail: "1 MB of output was lost"}}
		l.reopen(cli.TextDelta{Text: "The end."})
		time.Sleep(5 * time.Second)
		l.finish(l.card, orchestrator.Outcome{Text: "The end."})
		l.wantText("⚠️ 1 MB of output was lost\n----\nThe end.")
	})
}

func TestReopenedCardWhoseJournalIsInTrouble(t *testing.T) {
	o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: "One two", Model: "opus"}
	for name, again := range map[string]func(l *life){
		"Finish is called again": func(l *life) {
			l.finish(l.card, o)
			l.wantText("One two\n\nopus")
		},
		"ductor starts again": func(l *life) {
			l.restart(o.State, o.Text)
			l.wantText("One two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(l *life) {
				l.show(cli.TextDelta{Text: "One"})
				time.Sleep(time.Second)
				l.kill()
				l.shelf.Unreadable = true
				l.reopen(cli.TextDelta{Text: " two"})
				time.Sleep(time.Second)
				l.wantText("One")
				if err := l.card.Finish(context.Background(), o); err == nil {
					t.Error("Finish said that the outcome is shown")
				}
				l.wantText("One")
				l.shelf.Unreadable = false
				again(l)
			})
		})
	}
}

// An outcome that could not be stored is not shown either; as soon as it can be, it is, once.
func TestACardIsFinishedAsSoonAsTheJournalIsBack(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.cards.Open(s.turn)
		c.Show(cli.TextDelta{Text: "One"})
		time.Sleep(time.Second)
		s.diesAfter(0)
		o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: "One two", Model: "opus"}
		for range 3 {
			if err := c.Finish(context.Background(), o); err == nil {
				t.Error("Finish said that the outcome is shown")
			}
		}
		s.wantText("One")
		s.revive()
		s.finish(c, o)
		s.wantText("One two\n\nopus")
		if n := s.wall.Count("edit"); n != 1 {
			t.Errorf("%d edits", n)
		}
	})
}

func TestReopenedCardInterruptedAfterAll(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: "One"})
		time.Sleep(time.Second)
		l.kill()
		l.reopen(cli.TextDelta{Text: " two"})
		time.Sleep(time.Second)
		l.card.Leave(context.Background())
		l.bury()
		l.restart(orchestrator.TurnInterrupted, "")
		l.wantText("One two\n\n⚠️ Interrupted by a restart.\n[Run again]")
	})
}

func TestLeftCardShowsWhatIsPendingAndThenNothing(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: "One"})
		synctest.Wait()
		l.show(cli.TextDelta{Text: " two"})
		l.card.Leave(context.Background())
		l.wantText("One two")
		calls := l.wall.Count("")
		l.card.Show(cli.TextDelta{Text: " three"})
		time.Sleep(time.Minute)
		if n := l.wall.Count("") - calls; n > 0 {
			t.Errorf("%d calls after the card was left", n)
		}
	})
}

func TestLeavingACardEndsWithItsContext(t *testing.T) {
	inLife(t, func(l *life) {
		l.wall.Mishaps = func(string) bottest.Mishap { return bottest.RateLimited }
		l.show(cli.TextDelta{Text: "One"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		l.card.Leave(ctx)
		if took := time.Since(start); took != time.Second {
			t.Errorf("leaving took %s", took)
		}
	})
}

// However a turn's events are cut into the lives of several ductors, left or killed in the middle of a call:
// the chat shows the whole document, in order and once, or is told what may be missing; nothing is deleted
// or sent again; and catching up takes no more calls than there are messages.
func TestLawACardOfManyLivesIsTheCardOfOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bottest.InBubble(t, func(t *testing.T) {
			s := newStage(t)
			s.wall.T = rt
			playLives(rt, &life{stage: s, card: s.cards.Open(s.turn)})
			s.close()
		})
	})
}

// teller is a card that is told in several lives.
type teller struct{ *life }

func (t teller) Show(ev cli.Event) { t.life.show(ev) }

func (t teller) Finish(ctx context.Context, o orchestrator.Outcome) error {
	return t.card.Finish(ctx, o)
}

func (t teller) Amend(ctx context.Context, o orchestrator.Outcome) error { return t.card.Amend(ctx, o) }

func (t teller) Leave(ctx context.Context) { t.card.Leave(ctx) }

func playLives(rt *rapid.T, l *life) {
	delay := time.Duration(rapid.IntRange(0, 700).Draw(rt, "slow")) * time.Millisecond
	l.wall.Mu.Lock()
	l.wall.Delay = delay
	l.wall.Mu.Unlock()
	play := scene{rt: rt, card: teller{l}, doc: newDocument(false)}
	for range rapid.IntRange(1, 4).Draw(rt, "deaths") {
		for range rapid.IntRange(0, 13).Draw(rt, "events") {
			play.act()
		}
		l.end(rt)
		time.Sleep(time.Duration(rapid.IntRange(0, 30).Draw(rt, "down")) * time.Second)
		from, messages := l.wall.Count("send")+l.wall.Count("edit"), len(l.wall.Visible())
		l.card = &silent{} // what happens meanwhile is told later
		for range rapid.IntRange(0, 5).Draw(rt, "meanwhile") {
			play.act()
		}
		l.reopen()
		if rapid.Bool().Draw(rt, "quiet") {
			time.Sleep(time.Duration(max(messages, 1)) * 2 * time.Second)
			synctest.Wait()
			made := l.wall.Count("send") + l.wall.Count("edit") - from
			if n := len(l.wall.Visible()); made > n+1 { // and one to say that the agent thinks
				rt.Fatalf("catching up took %d calls for %d messages", made, n)
			}
		}
	}
	o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: play.answer.String(), Model: "opus"}
	if err := l.card.Finish(context.Background(), o); err != nil {
		rt.Fatalf("finish: %v", err)
	}
	synctest.Wait()
	play.doc.finish(o, l.cards.look().Footer)
	shown, noticed := shownOnWall(l.wall)
	whole := wholeOf(play.doc)
	if !noticed && squeezed(shown) != whole {
		rt.Fatalf("the chat shows\n%q\nthe document is\n%q", squeezed(shown), whole)
	}
	if l.wall.Lost == 0 && noticed {
		rt.Fatal("the chat is told of a message that was not lost")
	}
	play.once(shown, noticed)
}

// end ends a life: it leaves its card, or dies, perhaps in the middle of a call that may have happened.
func (l *life) end(rt *rapid.T) {
	switch rapid.IntRange(0, 2).Draw(rt, "death") {
	case 0:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rapid.IntRange(0, 5).Draw(rt, "patience"))*time.Second)
		defer cancel()
		l.card.Leave(ctx)
	case 1:
		l.kill()
		return
	case 2:
		fate := rapid.SampledFrom([]bottest.Mishap{bottest.LostAfter, bottest.LostBefore, bottest.NotSent}).Draw(rt, "fate")
		hit := make(chan struct{})
		var struck bool
		l.wall.Mu.Lock()
		l.wall.Mishaps = func(method string) bottest.Mishap {
			if struck || method == "typing" {
				return map[bool]bottest.Mishap{true: bottest.NotSent, false: bottest.GoesWell}[struck]
			}
			struck = true
			if method == "send" {
				l.wall.Lost++
			}
			l.shelf.Mu.Lock()
			l.shelf.DiesAt = max(l.shelf.Writes, 1)
			l.shelf.Mu.Unlock()
			close(hit)
			return fate
		}
		l.wall.Mu.Unlock()
		select {
		case <-hit:
		case <-time.After(3 * time.Second):
			l.kill()
		}
	}
	time.Sleep(time.Second) // longer than any call
	synctest.Wait()
	l.bury()
	l.wall.Mu.Lock()
	l.wall.Mishaps = nil
	l.wall.Mu.Unlock()
}

// A card that goes on after a restart has its Stop button while it waits for its user, for a tool or for the agent, also if the first
// message of the new process is the first of all.
func TestReopenedCardCanBeStopped(t *testing.T) {
	text := cli.TextDelta{Text: "Let me see."}
	for name, then := range map[string][]cli.Event{
		"a card waits":    {text, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"}, cli.ApprovalAsked{ID: "a", Started: "1"}},
		"a question":      {text, cli.QuestionAsked{ID: "a"}},
		"a tool runs":     {text, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"}},
		"it thinks":       {text},
		"it is asked for": {text, cli.Status{Kind: cli.StatusPaused, Detail: "again at 15:04"}},
	} {
		for _, shown := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", shown before: ", shown), func(t *testing.T) {
				inLife(t, func(l *life) {
					if shown {
						l.show(then...)
						time.Sleep(5 * time.Second)
					} else {
						l.told = then
					}
					l.kill()
					l.reopen()
					time.Sleep(10 * time.Second)
					posts := l.wall.Visible()
					if last := posts[len(posts)-1]; !strings.Contains(fmt.Sprint(last.Buttons), "Stop") {
						t.Errorf("%q has the buttons %v", last.Text.Text, last.Buttons)
					}
					l.finish(l.card, orchestrator.Outcome{Text: text.Text})
				})
			})
		}
	}
}
