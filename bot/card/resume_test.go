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

// life is the part of one process in a card's life.
type life struct {
	*rig
	card orchestrator.Card
	told []cli.Event // since the turn began
}

// show shows events. Those of the agent come again after a restart, those of ductor do not.
func (l *life) show(evs ...cli.Event) {
	for _, ev := range evs {
		if !ofDuctor(ev) {
			l.told = append(l.told, ev)
		}
		l.card.Show(ev)
	}
}

func ofDuctor(ev cli.Event) bool {
	switch ev := ev.(type) {
	case cli.HandedOver, cli.Substituted:
		return true
	case cli.Status:
		return ev.Kind == cli.StatusNotice
	}
	return false
}

// kill kills this process: waiting calls are never sent, and nothing more is stored.
func (l *life) kill() {
	l.journal.Mu.Lock()
	l.journal.DiesAt = max(l.journal.Writes, 1)
	l.journal.Mu.Unlock()
	l.restartAfterDeath()
}

// reopen continues in a new process, which replays all events so far.
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
	withRig(t, func(s *rig) { play(&life{rig: s, card: s.newCard()}) })
}

func TestReopenedCardGoesOnInItsMessage(t *testing.T) {
	for name, end := range map[string]func(l *life){
		"killed": (*life).kill,
		"left":   func(l *life) { l.card.Leave(context.Background()); l.restartAfterDeath() },
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(l *life) {
				l.show(cli.TextDelta{Text: "I look.\n\n"}, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
				time.Sleep(3 * time.Second)
				l.wantText("I look.\n\n⏳ Run make")
				end(l)
				time.Sleep(10 * time.Second)
				before := l.chat.Count("")
				l.reopen(ended("1", 0), cli.TextDelta{Text: "It *works*."})
				l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works.")
				if n := l.chat.Count("") - before; n != 1 {
					t.Errorf("catching up took %d calls", n)
				}
				l.show(cli.TextDelta{Text: " Indeed."})
				time.Sleep(2 * time.Second)
				l.finish(l.card, orchestrator.Outcome{Text: "I look.\n\nIt *works*. Indeed."})
				l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works. Indeed.")
				if n := l.chat.Count("send"); n != 1 {
					t.Errorf("%d messages were sent", n)
				}
			})
		})
	}
}

// A card that ductor left in order, several times, is edited only when there is something new to show.
func TestRestartsEditACardOnlyForNews(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: "I look.\n\n"}, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
		time.Sleep(3 * time.Second)
		before := l.chat.Count("edit")
		for range 3 {
			l.card.Leave(context.Background())
			l.restartAfterDeath()
			l.reopen()
			time.Sleep(3 * time.Second)
		}
		if n := l.chat.Count("edit") - before; n != 0 {
			t.Errorf("three restarts edited the card %d times", n)
		}
		l.show(ended("1", 0), cli.TextDelta{Text: "It *works*."})
		time.Sleep(time.Second)
		l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works.")
		l.kill() // now the text that was stored when the card was left is outdated
		l.reopen()
		l.wantText("I look.\n\n✓ Run make · 1.2 s\n\nIt works.")
		l.finish(l.card, orchestrator.Outcome{Text: "I look.\n\nIt *works*."})
	})
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
		time.Sleep(200 * time.Millisecond) // two seconds of silence: the replay is complete
		l.wantText("One two three four")
		if l.chat.Count("typing") == 0 {
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

// Text that an earlier process had not begun to send is sent: the card is empty for certain.
func TestReopenedCardThatHadShownNothing(t *testing.T) {
	inLife(t, func(l *life) {
		l.kill()
		l.reopen(cli.TextDelta{Text: "Here."})
		l.wantText("Here.")
		l.finish(l.card, orchestrator.Outcome{Text: "Here."})
		l.wantText("Here.")
	})
}

// dieSending kills this process while it sends the beginning of an answer.
func (l *life) dieSending(fate bottest.Mishap, first cli.Event) {
	l.chat.Mishaps = func(string) bottest.Mishap { l.journal.DiesAt = l.journal.Writes; return fate }
	l.show(first)
	synctest.Wait()
	l.chat.Mishaps = nil
	l.restartAfterDeath()
}

// A message that was being sent when ductor died may have arrived or not. It is not sent again. The card continues
// after it, and offers to show its content.
func TestReopenedCardGoesOnBehindAMessageOfUnknownFate(t *testing.T) {
	notice := "⚠️ The connection broke while I sent this answer, so part of it may be missing. Tap 👁 Show again to get it.\n[Show again]"
	for f, begins := range map[bottest.Mishap]string{bottest.LostAfter: "Hello \n----\n", bottest.LostBefore: ""} {
		t.Run(string(f), func(t *testing.T) {
			inLife(t, func(l *life) {
				l.dieSending(f, cli.TextDelta{Text: "Hello "})
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

// If a word was split at the end of a message with an unknown outcome, the next message contains the whole word. When
// the answer is shown again, it is in order and complete, with no word in pieces.
func TestAMessageOfUnknownFateCutsNoWord(t *testing.T) {
	inLife(t, func(l *life) {
		l.dieSending(bottest.LostBefore, cli.TextDelta{Text: "One two thr"})
		answer := "One two three " + strings.Repeat("and so on ", 500) + "to the end."
		l.reopen(cli.TextDelta{Text: strings.TrimPrefix(answer, "One two thr")})
		time.Sleep(10 * time.Second)
		l.finish(l.card, orchestrator.Outcome{Text: answer})
		if text := l.chat.Text(); !strings.HasPrefix(text, "three and so on") {
			t.Errorf("it goes on with %.40q", text)
		}
		from := len(l.chat.Visible())
		if err := l.cards.ShowAgain(context.Background(), l.turn); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		var again []string
		for _, p := range l.chat.Visible()[from:] {
			again = append(again, strings.Fields(p.Text.Text)...)
		}
		if got := strings.Join(again, " "); got != answer {
			t.Errorf("shown again is %d messages, %.40q … %q", len(l.chat.Visible())-from, got, got[max(len(got)-40, 0):])
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
		before := l.chat.Visible()
		l.kill()
		calls := l.chat.Count("edit")
		l.reopen(ended("slow", 0))
		time.Sleep(8 * time.Second) // short enough that the line shows no thinking time
		after := l.chat.Visible()
		if len(before) < 4 || len(after) != len(before) {
			t.Fatalf("%d messages, and %d after the restart", len(before), len(after))
		}
		for i := 1; i+1 < len(after); i++ {
			if after[i].Edits != before[i].Edits {
				t.Errorf("message %d was edited", i)
			}
		}
		// The first message for the tool, and the newest: once, and once more for the thinking line.
		if n := l.chat.Count("edit") - calls; n > 3 || !strings.HasPrefix(after[0].Text.Text, "✓ Run make world") {
			t.Errorf("%d edits; the first message begins %.40q", n, after[0].Text.Text)
		}
		// A change that is undone is a change too: the stored state of a message is never older than the message.
		l.kill()
		l.told = slices.DeleteFunc(l.told, func(ev cli.Event) bool { _, ok := ev.(cli.ToolEnded); return ok })
		l.reopen()
		time.Sleep(5 * time.Second)
		if text := l.chat.Visible()[0].Text.Text; !strings.HasPrefix(text, "⏳ Run make world") {
			t.Errorf("the first message begins %.40q", text)
		}
		l.finish(l.card, orchestrator.Outcome{Text: answer.String()})
	})
}

// Notes of ductor above an answer stay there after a restart, also if ductor died while it sent the first message. The
// messages behind them begin where they began.
func TestReopenedCardBeginsWithTheSameNotes(t *testing.T) {
	notes := []cli.Event{
		cli.Substituted{By: "codex", Why: &cli.Failure{Kind: cli.Overloaded, Agent: "claude"}},
		cli.Status{Kind: cli.StatusNotice, Detail: "bypass has ended"},
		cli.HandedOver{To: "codex", Turns: 2, Tokens: 300},
	}
	const above = "🔁 Codex answers. The model behind Claude is overloaded.\n⚠️ bypass has ended\n🤝 handed 2 turns to Codex, 300 tokens\n\n"
	t.Run("killed", func(t *testing.T) {
		inLife(t, func(l *life) {
			l.show(notes...)
			text := strings.Repeat("All that was said before. ", 300)
			l.show(cli.TextDelta{Text: text})
			time.Sleep(10 * time.Second)
			before := l.chat.Visible()
			for range 2 {
				l.kill()
				l.reopen()
				time.Sleep(5 * time.Second)
			}
			l.finish(l.card, orchestrator.Outcome{Text: text})
			after := l.chat.Visible()
			if len(before) != 2 || len(after) != 2 || after[0].Edits != before[0].Edits || !strings.HasPrefix(after[0].Text.Text, above) {
				t.Errorf("%d messages, then %d; the first begins %.300q", len(before), len(after), after[0].Text.Text)
			}
		})
	})
	t.Run("died while it sent", func(t *testing.T) {
		inLife(t, func(l *life) {
			l.dieSending(bottest.LostAfter, notes[0])
			l.reopen(cli.TextDelta{Text: "Hello"})
			time.Sleep(time.Second)
			l.wantText("🔁 Codex answers. The model behind Claude is overloaded.\n----\nHello")
		})
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
				l.journal.Unreadable = true
				l.reopen(cli.TextDelta{Text: " two"})
				time.Sleep(time.Second)
				l.wantText("One")
				if err := l.card.Finish(context.Background(), o); err == nil {
					t.Error("Finish said that the outcome is shown")
				}
				l.wantText("One")
				l.journal.Unreadable = false
				again(l)
			})
		})
	}
}

// An outcome that cannot be stored is not shown. As soon as it can be stored, it is shown, once.
func TestACardIsFinishedAsSoonAsTheJournalIsBack(t *testing.T) {
	withRig(t, func(s *rig) {
		c := s.newCard()
		c.Show(cli.TextDelta{Text: "One"})
		time.Sleep(time.Second)
		s.killAfterWrites(0)
		o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: "One two", Model: "opus"}
		for range 3 {
			if err := c.Finish(context.Background(), o); err == nil {
				t.Error("Finish said that the outcome is shown")
			}
		}
		s.wantText("One")
		s.repairJournal()
		s.finish(c, o)
		s.wantText("One two\n\nopus")
		if n := s.chat.Count("edit"); n != 1 {
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
		l.restartAfterDeath()
		l.restart(orchestrator.TurnInterrupted, "")
		l.wantText("One two\n\n⚠️ Interrupted by a restart.\n[Run again]")
	})
}

// The chat shows that a turn was interrupted even if Telegram's response to that message was lost, or ductor ended
// while it was sent.
func TestTheNewsOfAnInterruptionArrives(t *testing.T) {
	const news = "⚠️ Interrupted by a restart.\n[Run again]"
	for fate, want := range map[bottest.Mishap]string{
		bottest.LostBefore: news, bottest.LostAfter: news + "\n----\n" + news,
	} {
		for _, dies := range []bool{false, true} {
			withRig(t, func(s *rig) {
				s.chat.Mishaps = func(string) bottest.Mishap {
					s.chat.Mishaps = nil
					if dies {
						s.journal.DiesAt = 1
					}
					return fate
				}
				s.turn.State = orchestrator.TurnInterrupted
				_ = s.cards.Redeliver(s.Context(), s.turn) // an error means that ductor died
				s.restart(orchestrator.TurnInterrupted, "")
				s.wantText(want)
			})
		}
	}
}

func TestLeftCardShowsWhatIsPendingAndThenNothing(t *testing.T) {
	inLife(t, func(l *life) {
		l.show(cli.TextDelta{Text: "One"})
		synctest.Wait()
		l.show(cli.TextDelta{Text: " two"})
		l.card.Leave(context.Background())
		l.wantText("One two")
		calls := l.chat.Count("")
		l.card.Show(cli.TextDelta{Text: " three"})
		time.Sleep(time.Minute)
		if n := l.chat.Count("") - calls; n > 0 {
			t.Errorf("%d calls after the card was left", n)
		}
	})
}

func TestLeavingACardEndsWithItsContext(t *testing.T) {
	inLife(t, func(l *life) {
		l.chat.Mishaps = func(string) bottest.Mishap { return bottest.RateLimited }
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

// However the events of a turn are divided between several processes, which leave or die in the middle of a call: the
// chat shows the whole document, in order and once, or a notice about a part that may be missing. Nothing is deleted or
// sent twice, and catching up takes no more calls than there are messages.
func TestLawACardOfManyLivesIsTheCardOfOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bottest.InBubble(t, func(t *testing.T) {
			s := newRig(t)
			s.chat.T = rt
			playLives(rt, &life{rig: s, card: s.newCard()})
			s.close()
		})
	})
}

// teller is a card that gets its events in several lives.
type teller struct{ *life }

func (t teller) Show(ev cli.Event) { t.life.show(ev) }

func (t teller) End() { t.card.End() }

func (t teller) Finish(ctx context.Context, o orchestrator.Outcome) error {
	return t.card.Finish(ctx, o)
}

func (t teller) Amend(ctx context.Context, o orchestrator.Outcome) error { return t.card.Amend(ctx, o) }

func (t teller) Leave(ctx context.Context) { t.card.Leave(ctx) }

func playLives(rt *rapid.T, l *life) {
	delay := time.Duration(rapid.IntRange(0, 700).Draw(rt, "slow")) * time.Millisecond
	l.chat.Mu.Lock()
	l.chat.Delay = delay
	l.chat.Mu.Unlock()
	play := scene{rt: rt, card: teller{l}, doc: newDocument(false)}
	for range rapid.IntRange(1, 4).Draw(rt, "deaths") {
		for range rapid.IntRange(0, 13).Draw(rt, "events") {
			play.act()
		}
		l.end(rt)
		time.Sleep(time.Duration(rapid.IntRange(0, 30).Draw(rt, "down")) * time.Second)
		from, messages := l.chat.Count("send")+l.chat.Count("edit"), len(l.chat.Visible())
		l.card = &silent{} // the next life gets the events that happen meanwhile
		for range rapid.IntRange(0, 5).Draw(rt, "meanwhile") {
			play.act()
		}
		l.reopen()
		if rapid.Bool().Draw(rt, "quiet") {
			time.Sleep(time.Duration(max(messages, 1)) * 2 * time.Second)
			synctest.Wait()
			made := l.chat.Count("send") + l.chat.Count("edit") - from
			if n := len(l.chat.Visible()); made > n+1 { // and one for the thinking line
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
	shown, noticed := shownInChat(l.chat)
	whole := wholeOf(play.doc)
	if !noticed && squeezed(shown) != whole {
		rt.Fatalf("the chat shows\n%q\nthe document is\n%q", squeezed(shown), whole)
	}
	if l.chat.Lost == 0 && noticed {
		rt.Fatal("the chat is told of a message that was not lost")
	}
	play.once(shown, noticed)
}

// end ends a life: it leaves its card, or dies, perhaps in the middle of a call that may have arrived.
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
		l.chat.Mu.Lock()
		l.chat.Mishaps = func(method string) bottest.Mishap {
			if struck || method == "typing" {
				return map[bool]bottest.Mishap{true: bottest.NotSent, false: bottest.GoesWell}[struck]
			}
			struck = true
			l.journal.Mu.Lock()
			l.journal.DiesAt = max(l.journal.Writes, 1)
			l.journal.Mu.Unlock()
			close(hit)
			return fate
		}
		l.chat.Mu.Unlock()
		select {
		case <-hit:
		case <-time.After(3 * time.Second):
			l.kill()
		}
	}
	time.Sleep(time.Second) // longer than any call
	synctest.Wait()
	l.restartAfterDeath()
	l.chat.Mu.Lock()
	l.chat.Mishaps = nil
	l.chat.Mu.Unlock()
}

// A card that continues after a restart has its Stop button while it waits for its user, for a tool or for the agent,
// even if the first message of the new process is the first of all.
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
					posts := l.chat.Visible()
					if last := posts[len(posts)-1]; !strings.Contains(fmt.Sprint(last.Buttons), "Stop") {
						t.Errorf("%q has the buttons %v", last.Text.Text, last.Buttons)
					}
					l.finish(l.card, orchestrator.Outcome{Text: text.Text})
				})
			})
		}
	}
}

// A new version of ductor continues a card that an older one has stored during the turn.
func TestALayoutThatAnOlderVersionStored(t *testing.T) {
	saved, err := decodeCard([]byte(`{"first":1,"texts":[{"text":"two"}],"strips":true,"starts":[[0,0],[0,4000]],
		"prints":["a","b"]}`))
	if err != nil || !slices.Equal(saved.Layout.Starts, [][2]int{{0, 0}, {0, 4000}}) || !slices.Equal(saved.Layout.Prints, []string{"a", "b"}) {
		t.Errorf("the layout is %+v, %v", saved.Layout, err)
	}
	if strips := saved.contents("").strips; strips != 1 {
		t.Errorf("%d messages lose their buttons", strips)
	}
}
