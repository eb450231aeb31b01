package card

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// displays counts the reports of cards.
type displays struct{ gains, tooOld int }

func (d *displays) RichWouldHelp(context.Context, orchestrator.ConversationID) error {
	d.gains++
	return nil
}
func (d *displays) RichUnsupported(context.Context, orchestrator.ConversationID) error {
	d.tooOld++
	return nil
}

// withRichRig runs play with a turn in a chat that sees rich messages.
func withRichRig(t *testing.T, play func(l *life, told *displays)) {
	t.Helper()
	withRig(t, func(s *rig) {
		told := &displays{}
		s.turn.Wants.Card.Display = orchestrator.DisplayRich
		s.cards.opts.Displays, s.cards.opts.Scrub = told, tgapi.NewScrubber("123:token", "hunter2-hunter2")
		play(&life{rig: s, card: s.newCard()}, told)
	})
}

// kinds returns the kinds of the blocks of a message.
func kinds(p *bottest.Post) (all []render.BlockKind) {
	for _, b := range p.Rich {
		all = append(all, b.Kind)
	}
	return all
}

func (s *rig) wantKinds(want ...render.BlockKind) {
	s.Helper()
	posts := s.chat.Visible()
	if len(posts) != 1 {
		s.Fatalf("the chat shows %d messages, want one", len(posts))
	}
	if got := kinds(posts[0]); !slices.Equal(got, want) {
		s.Errorf("the blocks are %v, want %v", got, want)
	}
}

const treeTable = "# Trees\n\n| tree | age |\n|--|--:|\n| oak | 800 |\n"

// A rich card is one message that grows by edits. Its tables are tables, its outputs fold, its plan is a checklist, and
// no part contains a secret.
func TestARichCardGrowsInOneMessage(t *testing.T) {
	withRichRig(t, func(l *life, told *displays) {

		l.chat.Seen = func(text render.Text) {
			if strings.Contains(text.Text, "hunter2") {
				l.Errorf("a secret is shown: %q", text.Text)
			}
		}
		l.show(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "look", State: cli.PlanDone}, {Text: "tell", State: cli.PlanActive}}})
		l.show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "cat trees"})
		time.Sleep(1500 * time.Millisecond) // a pause of two seconds is shown
		l.wantKinds(render.Paragraph, render.List, render.Paragraph)
		done := ended("1", 0)
		done.Output = "oak 800\nhunter2-hunter2\n"
		l.show(done, cli.TextDelta{Text: treeTable + "\nhunter2\\-hunter2"})
		time.Sleep(1500 * time.Millisecond) // a pause of two seconds is shown
		l.wantKinds(render.Paragraph, render.List, render.Details, render.Heading, render.TableOf, render.Paragraph)
		post := l.chat.Visible()[0]
		if out := post.Rich[2].Blocks; len(out) != 1 || out[0].Kind != render.PreBlock || !strings.HasPrefix(out[0].Text.Text, "oak 800\n") {
			t.Errorf("the output is %+v", out)
		}
		if len(post.Buttons) == 0 {
			t.Error("a running card has no Stop button")
		}
		l.finish(l.card, orchestrator.Outcome{Text: treeTable + "\nhunter2\\-hunter2", Model: "opus", Duration: time.Second})
		l.wantKinds(render.Details, render.Details, render.Heading, render.TableOf, render.Paragraph, render.Paragraph)
		if l.chat.Count("send") != 1 || told.gains+told.tooOld != 0 {
			t.Errorf("%d messages were sent; told %+v", l.chat.Count("send"), told)
		}
	})
}

// A long answer is one message. A longer one shows its beginning and its end, with a file.
func TestARichCardOfALongAnswer(t *testing.T) {
	for _, c := range []struct {
		units int
		files int
	}{{30_000, 0}, {50_000, 1}} {
		withRichRig(t, func(l *life, _ *displays) {
			answer := "first\n\n" + strings.Repeat("An oak is a tree.\n\n", c.units/19) + "last"
			l.show(cli.TextDelta{Text: answer})
			time.Sleep(3 * time.Second)
			l.finish(l.card, orchestrator.Outcome{Text: strings.ReplaceAll(answer, "tree.\n\nAn", "tree. An")})
			posts := l.chat.Visible()
			if len(posts) != 1 || !strings.HasPrefix(posts[0].Text.Text, "first") || !strings.Contains(posts[0].Text.Text, "last") {
				t.Errorf("%d units are shown in %d messages", c.units, len(posts))
			}
			if got := len(l.chat.Sent()); got != c.files {
				t.Errorf("%d files follow %d units", got, c.units)
			}
		})
	}
}

// A server that does not support rich messages gets plain ones at once, and Displays records the chat.
func TestARichCardOnAnOldServer(t *testing.T) {
	withRichRig(t, func(l *life, told *displays) {
		l.chat.OldServer = true
		answer := strings.Repeat("An oak is a tree.\n", 400)
		l.show(cli.TextDelta{Text: "An oak"})
		time.Sleep(time.Second)
		l.wantText("An oak")
		l.finish(l.card, orchestrator.Outcome{Text: answer})
		posts := l.chat.Visible()
		if len(posts) != 2 || posts[0].Rich != nil || posts[1].Rich != nil || told.tooOld != 1 {
			t.Errorf("%d messages, told %+v", len(posts), told)
		}
	})
}

// If Telegram rejects the content of a rich card, this card becomes plain, and no other.
func TestARefusedRichCardBecomesPlain(t *testing.T) {
	withRichRig(t, func(l *life, told *displays) {
		var refuses atomic.Bool
		l.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "edit" && refuses.CompareAndSwap(true, false) {
				return bottest.RefusedOnce
			}
			return bottest.GoesWell
		}
		l.show(cli.TextDelta{Text: "An oak"})
		time.Sleep(2 * time.Second)
		refuses.Store(true)
		l.finish(l.card, orchestrator.Outcome{Text: strings.Repeat("An oak is a tree.\n", 400)})
		posts := l.chat.Visible()
		if len(posts) != 2 || posts[0].Rich != nil || told.tooOld != 0 || l.chat.Count("send") != 2 {
			t.Errorf("%d messages, %d sent, told %+v", len(posts), l.chat.Count("send"), told)
		}
	})
}

// A send with an unknown outcome is not repeated: a plain message contains the part it may lack, and a notice says so.
func TestARichCardOfUnknownFateGoesOnBehindIt(t *testing.T) {
	withRichRig(t, func(l *life, _ *displays) {
		lost := 0
		l.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "send" && lost == 0 {
				lost++
				return bottest.LostAfter
			}
			return bottest.GoesWell
		}
		l.show(cli.TextDelta{Text: "An oak "})
		time.Sleep(2 * time.Second)
		l.show(cli.TextDelta{Text: "is a tree."})
		time.Sleep(4 * time.Second)
		l.finish(l.card, orchestrator.Outcome{Text: "An oak is a tree."})
		posts := l.chat.Visible()
		if len(posts) != 3 || !strings.Contains(posts[1].Text.Text, "is a tree.") || posts[1].Rich != nil || !strings.Contains(posts[2].Text.Text, "may be missing") {
			t.Errorf("the chat shows\n%s", l.chat.Text())
		}
		if err := l.cards.ShowAgain(context.Background(), l.ended("An oak is a tree.")); err != nil {
			t.Error(err)
		}
	})
}

// ended returns the turn after its end.
func (l *life) ended(text string) orchestrator.Turn {
	t := l.turn
	t.State, t.Outcome = orchestrator.TurnDone, orchestrator.Outcome{State: orchestrator.TurnDone, Text: text}
	return t
}

// After a restart or a kill a rich card continues in its message. If the turn does not continue, its message keeps its
// content.
func TestARichCardOutlivesDuctor(t *testing.T) {
	for name, end := range map[string]func(l *life){
		"killed": (*life).kill,
		"left":   func(l *life) { l.card.Leave(context.Background()); l.restartAfterDeath() },
	} {
		t.Run(name, func(t *testing.T) {
			withRichRig(t, func(l *life, _ *displays) {
				l.show(cli.TextDelta{Text: treeTable}, cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
				time.Sleep(3 * time.Second)
				l.wantKinds(render.Heading, render.TableOf, render.Paragraph)
				end(l)
				time.Sleep(10 * time.Second)
				done := ended("1", 0)
				done.Output = "made"
				l.reopen(done, cli.TextDelta{Text: "It *works*."})
				time.Sleep(2 * time.Second)
				l.finish(l.card, orchestrator.Outcome{Text: treeTable + "It *works*."})
				l.wantKinds(render.Heading, render.TableOf, render.Details, render.Paragraph)
				if n := l.chat.Count("send"); n != 1 {
					t.Errorf("%d messages were sent", n)
				}
			})
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		withRichRig(t, func(l *life, _ *displays) {
			l.show(cli.TextDelta{Text: treeTable + strings.Repeat("An oak is a tree.\n\n", 400)})
			time.Sleep(3 * time.Second)
			l.kill()
			l.turn.State = orchestrator.TurnInterrupted
			if err := l.cards.Redeliver(context.Background(), l.turn); err != nil {
				t.Error(err)
			}
			posts := l.chat.Visible()
			if len(posts) != 1 || len(posts[0].Rich) != 402 || !strings.Contains(posts[0].Text.Text, "Interrupted by a restart") {
				t.Errorf("%d messages, the first of %d blocks", len(posts), len(posts[0].Rich))
			}
		})
	})
	t.Run("ended meanwhile", func(t *testing.T) {
		withRichRig(t, func(l *life, _ *displays) {
			l.show(cli.TextDelta{Text: "# Trees"})
			time.Sleep(3 * time.Second)
			l.kill()
			if err := l.cards.Redeliver(context.Background(), l.ended(treeTable)); err != nil {
				t.Error(err)
			}
			l.wantKinds(render.Heading, render.TableOf)
		})
	})
}

// A chat is asked after an answer that would gain, if it was not asked before.
func TestWhichAnswersHaveAChatAsked(t *testing.T) {
	long := strings.Repeat("An oak is a tree.\n", 400)
	for _, c := range []struct {
		name, text string
		mode       orchestrator.DisplayMode
		want       int
	}{
		{"short", "An oak", orchestrator.DisplayAsk, 0},
		{"a table", treeTable, orchestrator.DisplayAsk, 1},
		{"no table", "a | b", orchestrator.DisplayAsk, 0},
		{"long", long, orchestrator.DisplayAsk, 1},
		{"asked", long, orchestrator.DisplayAsked, 0},
		{"plain", long, orchestrator.DisplayPlain, 0},
		{"rich", long, orchestrator.DisplayRich, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			withRig(t, func(s *rig) {
				told := &displays{}
				s.turn.Wants.Card.Display, s.cards.opts.Displays = c.mode, told
				s.finish(s.newCard(), orchestrator.Outcome{Text: c.text})
				if told.gains != c.want {
					t.Errorf("it was told %d times, want %d", told.gains, c.want)
				}
			})
		})
	}
}
