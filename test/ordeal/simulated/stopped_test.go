package simulated

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// TestAStopOnAFullDisk stops work while nothing can be stored. The stop is answered once, and the dropped prompts
// never run.
func TestAStopOnAFullDisk(t *testing.T) {
	text, err := os.ReadFile("../cases/stop-on-a-full-disk.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	o := playWhole(t, s)
	for _, v := range o.found {
		t.Error(v)
	}
	for token, wanted := range map[scenario.Token]bool{"p2": false, "p3": true, "p4": true} {
		got := func(e judge.AgentEvent) bool { return e.Token == token && e.What == judge.Got }
		ran := slices.ContainsFunc(o.evidence.Agents, got)
		if ran != wanted {
			t.Errorf("%s ran: %v", token, ran)
		}
	}
	var answers []string
	for _, m := range o.evidence.Chats[0].History {
		stops := func(v telegram.Version) bool { return strings.Contains(strings.ToLower(v.Text), "stop") }
		if m.From.Bot && slices.ContainsFunc(m.Versions, stops) {
			answers = append(answers, m.Text)
		}
	}
	p := lang.Language("en").Printer()
	if want := p.Text("bot.stopped") + " " + p.Text("bot.dropped", 1); len(answers) != 1 || answers[0] != want {
		t.Errorf("the stop was answered %q, want %q", answers, want)
	}
	if t.Failed() {
		t.Log(strings.Join(o.log, "\n"))
	}
}
