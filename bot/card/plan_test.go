package card

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// A plan is one list that changes in place, and is folded when the turn has ended.
func TestPlanIsOneList(t *testing.T) {
	d := newDocument(false)
	d.applyEvent(cli.TextDelta{Text: "I begin."})
	d.applyEvent(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanActive}, {Text: "Write"}}})
	d.applyEvent(cli.TextDelta{Text: "\n\nNow I write."})
	if !d.applyEvent(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanDone}, {Text: "Write", State: cli.PlanActive}, {Text: "Test"}}}).urgent {
		t.Error("a change of the plan is not shown")
	}
	if d.applyEvent(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanDone}, {Text: "Write", State: cli.PlanActive}, {Text: "Test"}}}).urgent {
		t.Error("the same plan again is worth an edit")
	}
	show := func() render.Text {
		_, texts, _ := d.layout([]position{{}}, render.MessageLimit, 0)
		return texts[0]
	}
	want := "I begin.\n\n📋 Plan 1/3\n☑ Read\n◐ Write\n☐ Test\n\nNow I write."
	if got := show(); got.Text != want || len(got.Entities) != 0 {
		t.Errorf("the card shows %q %v", got.Text, got.Entities)
	}
	d.finish(orchestrator.Outcome{State: orchestrator.TurnDone, Text: "I begin.\n\nNow I write."}, nil)
	got := show()
	if !strings.Contains(got.Text, "☐ Test") || len(got.Entities) != 1 || got.Entities[0].Kind != render.Expandable {
		t.Errorf("in the end the card shows %q %v", got.Text, got.Entities)
	}
}

// For a long plan the card summarizes the finished steps in one line, and lists the next ones.
func TestLongPlan(t *testing.T) {
	var steps []cli.PlanStep
	for i := range 40 {
		s := cli.PlanStep{Text: fmt.Sprint("step ", i)}
		if i < 20 {
			s.State = cli.PlanDone
		}
		steps = append(steps, s)
	}
	d := newDocument(false)
	d.applyEvent(cli.PlanChanged{Steps: steps})
	got := d.segments[0].rendered().Text
	if !strings.HasPrefix(got, "📋 Plan 20/40\n☑ 20 steps done\n☐ step 20\n") || !strings.HasSuffix(got, "☐ step 29\n… and 10 more") {
		t.Errorf("the card shows %s", got)
	}
}

// However a plan changes, messages already sent stay within Telegram's limit.
func TestAPlanNeverOverflowsItsMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDocument(false)
		starts := []position{{}}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			if rapid.Bool().Draw(t, "text") {
				d.applyEvent(cli.TextDelta{Text: strings.Repeat("word ", rapid.IntRange(1, 600).Draw(t, "words"))})
			} else {
				var steps []cli.PlanStep
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					steps = append(steps, cli.PlanStep{Text: strings.Repeat("x", rapid.IntRange(0, 200).Draw(t, "length")), State: rapid.SampledFrom([]cli.PlanState{cli.PlanOpen, cli.PlanDone}).Draw(t, "state")})
				}
				d.applyEvent(cli.PlanChanged{Steps: steps})
			}
			var texts []render.Text
			starts, texts, _ = d.layout(starts, render.FullMessage, 0)
			for _, text := range texts {
				if n := render.Len(text.Text); n > render.MessageLimit {
					t.Fatalf("a message of %d units", n)
				}
			}
		}
	})
}
