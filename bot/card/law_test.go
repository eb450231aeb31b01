package card

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// scene generates an agent's turn: text of numbered words with Markdown around them, tools, retractions and pauses. It
// returns the answer.
type scene struct {
	rt     *rapid.T
	card   orchestrator.Card
	doc    *document // receives the same events, but is never sent
	answer cli.Answer
	words  int
	tools  int
	open   []cli.ToolID
	// retracted reports that the agent retracted text.
	retracted bool
}

func (s *scene) show(ev cli.Event) {
	s.answer.Add(ev)
	s.doc.applyEvent(ev)
	s.card.Show(ev)
}

func (s *scene) act() {
	switch rapid.IntRange(0, 11).Draw(s.rt, "event") {
	case 0:
		s.tools++
		id := cli.ToolID(fmt.Sprint(s.tools))
		var parent cli.ToolID
		if len(s.open) > 0 && rapid.Bool().Draw(s.rt, "child") {
			parent = s.open[0]
		}
		s.open = append(s.open, id)
		s.show(cli.ToolStarted{ID: id, Name: "Bash", Title: fmt.Sprintf("tool%d 😀 %s", s.tools, strings.Repeat("x", rapid.IntRange(0, 80).Draw(s.rt, "title"))), Parent: parent})
	case 1:
		if len(s.open) > 0 {
			i := rapid.IntRange(0, len(s.open)-1).Draw(s.rt, "ends")
			s.show(ended(string(s.open[i]), rapid.IntRange(0, 1).Draw(s.rt, "code")))
			s.open = slices.Delete(s.open, i, i+1)
		}
	case 2:
		if n := len(s.answer.String()); n > 0 {
			s.retracted = true
			s.show(cli.TextRetracted{Bytes: rapid.IntRange(1, n).Draw(s.rt, "retract")})
		}
	case 3:
		s.show(cli.Status{Kind: rapid.SampledFrom([]cli.StatusKind{cli.StatusCompacting, cli.StatusRetrying, cli.StatusIdle}).Draw(s.rt, "status")})
	case 4:
		time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(s.rt, "pause")) * time.Millisecond)
	case 5:
		s.text(rapid.IntRange(100, 2000).Draw(s.rt, "many"))
	default:
		s.text(rapid.IntRange(1, 40).Draw(s.rt, "few"))
		time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(s.rt, "pause")) * time.Millisecond)
	}
}

func (s *scene) text(words int) {
	var b strings.Builder
	marks := []string{"**", "*", "`", "_", "~~", "\n\n", "\n", "\n- ", "\n1. ", "\n# ", "\n> ", "\n```\n", "\n| ", "😀", "[", "](", "\n\n    "}
	seed := rapid.Uint64().Draw(s.rt, "marks") // one draw for all, or rapid runs out of data
	random := rand.New(rand.NewPCG(seed, 0))
	every := 1 + random.IntN(20)
	for i := range words {
		s.words++
		if i%every == 0 {
			b.WriteString(marks[random.IntN(len(marks))])
		}
		fmt.Fprintf(&b, "w%d; ", s.words)
	}
	s.show(cli.TextDelta{Text: b.String()})
}

var word = regexp.MustCompile(`w\d+;`)

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// shownInChat joins the visible messages of a card without notices.
func shownInChat(w *bottest.Chat) (text string, noticed bool) {
	var b strings.Builder
	for _, p := range w.Visible() {
		if strings.HasPrefix(p.Text.Text, "⚠️ The connection broke") {
			noticed = true
			continue
		}
		b.WriteString(p.Text.Text)
		b.WriteString(" ")
	}
	return b.String(), noticed
}

// Whatever happens in a turn and whatever Telegram answers: in the end the chat shows the whole document, in order and
// once. If a message's outcome is unknown, no part is shown twice, and a notice says that one may be missing. Telegram
// would accept every message at any time, which the fake chat checks.
func TestLawTheChatShowsTheWholeDocument(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bottest.InBubble(t, func(t *testing.T) {
			s := newRig(t)
			defer s.close()
			s.chat.T = rt
			playTurn(rt, s)
		})
	})
}

func playTurn(rt *rapid.T, s *rig) {
	never := []bottest.Mishap{bottest.GoesWell, bottest.GoesWell, bottest.GoesWell, bottest.RateLimited, bottest.ServerBroken, bottest.NotSent}
	onEdit := append(slices.Clone(never), bottest.LostBefore, bottest.LostAfter)
	s.chat.Delay = time.Duration(rapid.IntRange(0, 700).Draw(rt, "slow")) * time.Millisecond
	unsure := rapid.Bool().Draw(rt, "unsure")
	calm := rapid.IntRange(0, 3).Draw(rt, "calm") == 0
	// Drawn beforehand, because calls run on other goroutines. After the list all calls succeed.
	sends := rapid.SliceOfN(rapid.SampledFrom(map[bool][]bottest.Mishap{false: never, true: onEdit}[unsure]), 0, 30).Draw(rt, "sends")
	others := rapid.SliceOfN(rapid.SampledFrom(onEdit), 0, 60).Draw(rt, "others")
	s.chat.Mishaps = func(method string) bottest.Mishap {
		list := &others
		if method == "send" {
			list = &sends
		}
		if calm || len(*list) == 0 {
			return bottest.GoesWell
		}
		next := (*list)[0]
		*list = (*list)[1:]
		return next
	}
	play := scene{rt: rt, card: s.newCard(), doc: newDocument(false)}
	for range rapid.IntRange(0, 28).Draw(rt, "events") {
		play.act()
	}
	o := orchestrator.Outcome{State: orchestrator.TurnDone, Text: play.answer.String(), Model: "opus"}
	if err := play.card.Finish(context.Background(), o); err != nil {
		rt.Fatalf("finish: %v", err)
	}
	synctest.Wait()
	play.doc.finish(o, s.cards.look().Footer)
	shown, noticed := shownInChat(s.chat)
	lost := s.chat.Lost
	if whole := wholeOf(play.doc); lost == 0 && squeezed(shown) != whole {
		rt.Fatalf("the chat shows\n%q\nthe document is\n%q", squeezed(shown), whole)
	}
	if lost == 0 && noticed || lost == 1 && !noticed { // if two messages are lost, one may be the notice
		rt.Fatalf("%d messages were lost; the chat is told of it: %v", lost, noticed)
	}
	play.once(shown, noticed)
	if n := s.chat.Count("send"); calm && n > len(s.chat.Visible())+s.chat.Count("delete") {
		rt.Fatalf("%d sends for %d messages", n, len(s.chat.Visible()))
	}
}

// wholeOf returns the text of a document without whitespace.
func wholeOf(d *document) string {
	var b strings.Builder
	for _, s := range d.segments {
		b.WriteString(s.rendered().Text)
	}
	return squeezed(b.String())
}

// once checks that the chat shows no word of the answer twice, nor before an earlier one. A message with an unknown
// outcome may still contain text that the agent retracted.
func (s *scene) once(shown string, unknown bool) {
	if unknown && s.retracted {
		return
	}
	last, rt := -1, s.rt
	for _, w := range word.FindAllString(shown, -1) {
		var n int
		if _, err := fmt.Sscanf(w, "w%d;", &n); err != nil {
			rt.Fatal(err)
		}
		if n <= last {
			at := strings.LastIndex(shown, w)
			rt.Fatalf("%s is shown again, or too late, in %q", w, shown[max(at-300, 0):min(at+100, len(shown))])
		}
		last = n
	}
}

// Wherever the slices of a document start, they join to the document.
func TestLawSlicesJoinToTheDocument(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		play := scene{rt: rt, card: &silent{}, doc: newDocument(true)}
		for range rapid.IntRange(1, 18).Draw(rt, "events") {
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				play.text(rapid.IntRange(1, 600).Draw(rt, "words"))
			case 1:
				play.tools++
				play.show(cli.ToolStarted{ID: cli.ToolID(fmt.Sprint(play.tools)), Name: "Bash", Title: "x"})
			case 2:
				play.show(cli.ThinkingDelta{Text: "hm "})
			}
		}
		_, slices, _ := play.doc.layout([]position{{}}, render.FullMessage, 0)
		var joined strings.Builder
		for i, s := range slices {
			joined.WriteString(s.Text)
			if err := messageError(s.Text, i, len(slices)); err != nil {
				rt.Fatal(err)
			}
		}
		if whole := wholeOf(play.doc); squeezed(joined.String()) != whole {
			rt.Fatalf("slices are\n%q\nthe document is\n%q", squeezed(joined.String()), whole)
		}
	})
}

func messageError(text string, i, n int) error {
	if text == "" && n > 1 {
		return fmt.Errorf("part %d of %d is empty", i, n)
	}
	if units := len([]rune(text)); units > render.MessageLimit {
		return fmt.Errorf("part %d of %d has %d characters", i, n, units)
	}
	return nil
}

// silent is a card that shows nothing.
type silent struct{}

func (silent) Show(cli.Event)                                     {}
func (silent) End()                                               {}
func (silent) Finish(context.Context, orchestrator.Outcome) error { return nil }
func (silent) Amend(context.Context, orchestrator.Outcome) error  { return nil }
func (silent) Leave(context.Context)                              {}
