package card

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// houseRules returns the pacing of config.toml.example.
func houseRules() Pacing {
	return Pacing{MinChars: 24, MaxChars: 600, Idle: 400 * time.Millisecond, Sentences: true, Paragraphs: true}
}

// 200 deltas of 20 characters over 5 s: the limits from measured peers are 8 calls, no deletion, and a median delay of
// 500 ms.
func TestCardPaceOfAStream(t *testing.T) {
	for _, words := range []string{"no sentence ends at ", "this one is brief. a"} {
		withRig(t, func(s *rig) {
			s.cards.restyle(func(l *Look) { l.Pacing = houseRules() })
			s.chat.Mishaps = strict(3)
			lags := newLags(s.chat, len(words))
			c := s.newCard()
			for range 200 {
				lags.written()
				c.Show(cli.TextDelta{Text: words})
				time.Sleep(25 * time.Millisecond)
			}
			s.finish(c, orchestrator.Outcome{Text: strings.Repeat(words, 200)})
			p50, calls := lags.median(), s.chat.Count("")
			t.Logf("%q: median lag %s, %d calls", words, p50, calls)
			if p50 > 500*time.Millisecond || calls > 8 || s.chat.Count("delete") > 0 || lags.shown < 200 {
				t.Errorf("%q: median lag %s, %d calls, %d deletes, %d of 200 shown", words, p50, calls, s.chat.Count("delete"), lags.shown)
			}
		})
	}
}

// lags measures how long each delta takes to appear in the chat.
type lags struct {
	mu    sync.Mutex
	size  int
	at    []time.Time
	took  []time.Duration
	shown int
}

func newLags(w *bottest.Chat, size int) *lags {
	l := &lags{size: size}
	w.Seen = func(t render.Text) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for ; l.shown < len(l.at) && len(t.Text) >= (l.shown+1)*l.size-1; l.shown++ {
			l.took = append(l.took, time.Since(l.at[l.shown]))
		}
	}
	return l
}

func (l *lags) written() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, time.Now())
}

func (l *lags) median() time.Duration {
	slices.Sort(l.took)
	return l.took[len(l.took)/2]
}

func TestCardPace(t *testing.T) {
	for _, c := range []struct {
		name string
		chat int64
		feed time.Duration // pause between two words
		want []time.Duration
	}{
		{"private", 7, 50 * time.Millisecond, millis(0, 300, 1300, 2300, 3300)},
		{"group", -7, 50 * time.Millisecond, millis(0, 300, 3300)},
		{"a word now and then", 7, 1700 * time.Millisecond, millis(0, 1700, 3400)},
	} {
		t.Run(c.name, func(t *testing.T) {
			withRig(t, func(s *rig) {
				s.turn.Prompt.Conversation = orchestrator.ConversationID{Chat: c.chat}
				k := s.newCard()
				for at := time.Duration(0); at < 4*time.Second; at += c.feed {
					k.Show(cli.TextDelta{Text: "word "})
					time.Sleep(c.feed)
				}
				synctest.Wait()
				var got []time.Duration
				for i, method := range s.chat.Calls {
					if method != "typing" {
						got = append(got, s.chat.At[i].Sub(s.start))
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("calls at %v, want %v", got, c.want)
				}
				s.finish(k, orchestrator.Outcome{State: orchestrator.TurnAborted})
			})
		})
	}
}

func millis(ms ...time.Duration) []time.Duration {
	for i := range ms {
		ms[i] *= time.Millisecond
	}
	return ms
}

// A card in a rate-limited chat must not delay a card in another chat.
func TestCardsDoNotWaitForEachOther(t *testing.T) {
	withRig(t, func(s *rig) {
		slow := s.turn
		slow.ID = "slow"
		s.chat.Mishaps = func(string) bottest.Mishap { return bottest.RateLimited }
		c := s.cards.Open(slow)
		c.Show(cli.TextDelta{Text: "Never"})
		synctest.Wait()
		s.chat.Mu.Lock()
		s.chat.Mishaps = nil
		s.chat.Mu.Unlock()
		for i := range 20 {
			turn := s.turn
			turn.ID = cli.TurnID(fmt.Sprint(i))
			turn.Prompt.Conversation.Chat = int64(100 + i)
			start := time.Now()
			s.finish(s.cards.Open(turn), orchestrator.Outcome{Text: "Yes"})
			if took := time.Since(start); took > 0 {
				t.Errorf("card %d took %s", i, took)
			}
		}
		s.finish(c, orchestrator.Outcome{Text: "Never mind"})
	})
}

// BenchmarkCard100k streams a 100 kB answer in 5000 deltas over a minute, without the network.
func BenchmarkCard100k(b *testing.B) {
	delta := "Some *words* of `it`. "[:20]
	before, n := cpu(b), 0
	for b.Loop() {
		w := bottest.NewChat(b)
		w.Unchecked = true
		out := outbox.New(outbox.Options{Trouble: tgapi.TroubleOf, Private: outbox.Rate{Every: time.Millisecond, Burst: 100}, Overall: outbox.Rate{Every: time.Millisecond, Burst: 100}})
		o := over(w, out, bottest.NewJournal())
		o.Look = func() Look { return Look{IntervalPrivate: 10 * time.Millisecond} }
		cards := New(o)
		turn := orchestrator.Turn{ID: "t", Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: 1}}}
		c := cards.Open(turn)
		var answer strings.Builder
		for i := range 5000 {
			text := delta
			if i%20 == 19 {
				text = delta[:18] + "\n\n"
			}
			answer.WriteString(text)
			c.Show(cli.TextDelta{Text: text})
			if i%50 == 49 {
				time.Sleep(10 * time.Millisecond) // time for an edit, a hundred in all
			}
		}
		if err := c.Finish(context.Background(), orchestrator.Outcome{State: orchestrator.TurnDone, Text: answer.String()}); err != nil {
			b.Fatal(err)
		}
		if err := out.Drain(context.Background()); err != nil {
			b.Fatal(err)
		}
		n++
		b.ReportMetric(float64(w.Count("")), "calls")
	}
	b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(n), "cpu-ms/op")
}

func TestWhenGrowingTextIsDue(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opts := Pacing{MinChars: 10, MaxChars: 40, Idle: time.Second, Sentences: true, Paragraphs: true}
	const now, never = 0, -1
	for _, tc := range []struct {
		name string
		opts Pacing
		warm bool // a first piece was shown
		text string
		want time.Duration // after the last add; negative for not due
	}{
		{"nothing", opts, false, "", never},
		{"first text waits for MinChars", opts, false, "Hello", time.Second},
		{"first text is due at MinChars", opts, false, "Hello, all the world", now},
		{"later text waits", opts, true, "Hello, all the world", time.Second},
		{"later text with a sentence's end", opts, true, "Hello, all the world.", now},
		{"space behind the end", opts, true, "Hello, all the world! ", now},
		{"quotes behind the end", opts, true, "He said \"all the world.\"**", now},
		{"another script's end", opts, true, "你好，全世界的朋友们，大家好。", now},
		{"too short a sentence", opts, true, "Hello.", time.Second},
		{"a paragraph", opts, true, "Hello, all the world\n\n", now},
		{"a line is no paragraph", opts, true, "Hello, all the world\n", time.Second},
		{"a paragraph with spaces", opts, true, "Hello, all the world\n  \n", now},
		{"MaxChars", opts, true, strings.Repeat("é", 40), now},
		{"almost MaxChars", opts, true, strings.Repeat("é", 39), time.Second},
		{"no sentences asked for", Pacing{MinChars: 2, Idle: time.Minute, Paragraphs: true}, true, "Hello.", time.Minute},
		{"no paragraphs asked for", Pacing{MinChars: 2, Idle: time.Minute, Sentences: true}, true, "Hello\n\n", time.Minute},
		{"an end of which a part came before", opts, true, strings.Repeat("long ", 20) + "words.", now},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := growing{Pacing: tc.opts}
			if tc.warm {
				c.add("x", start)
				c.show()
			}
			c.add(tc.text, start)
			at, ok := c.due()
			if ok != (tc.want != never) || ok && !at.Equal(start.Add(tc.want)) {
				t.Errorf("due %v at %s", ok, at.Sub(start))
			}
		})
	}
}

// However added text is split into pieces, it is due at the same time as the whole, at Idle at the latest, and never
// before its last piece.
func TestGrowingTextLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab .!\n”日"))).Draw(t, "text")
		pacing := Pacing{
			MinChars: rapid.IntRange(0, 20).Draw(t, "min"), MaxChars: rapid.IntRange(0, 50).Draw(t, "max"),
			Idle: time.Second, Sentences: rapid.Bool().Draw(t, "sentences"), Paragraphs: rapid.Bool().Draw(t, "paragraphs"),
		}
		pieces, whole, at := growing{Pacing: pacing, shown: true}, growing{Pacing: pacing, shown: true}, time.Unix(0, 0)
		for _, r := range text {
			at = at.Add(time.Millisecond)
			pieces.add(string(r), at)
		}
		whole.add(text, at)
		due, ok := pieces.due()
		if want, any := whole.due(); ok != any || ok && !due.Equal(want) {
			t.Fatalf("%q is due %v at %s in pieces, %v at %s as a whole", text, ok, due, any, want)
		}
		if ok != (text != "") || ok && (due.After(at.Add(time.Second)) || due.Before(at)) {
			t.Fatalf("due %v at %s, added at %s", ok, due, at)
		}
		pieces.show()
		if _, ok := pieces.due(); ok {
			t.Fatal("due again with nothing added")
		}
	})
}

func BenchmarkGrowingText(b *testing.B) {
	b.ReportAllocs()
	at := time.Now()
	for b.Loop() {
		c := growing{Pacing: Pacing{MinChars: 1 << 20, Idle: time.Second, Sentences: true}}
		for range 5000 {
			c.add("twenty characters go ", at)
			c.due()
		}
		c.show()
	}
}
