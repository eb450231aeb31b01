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

// A plan is one list that changes in its place, and is folded when the turn has ended.
func TestPlanIsOneList(t *testing.T) {
	d := newDocument(false)
	d.add(cli.TextDelta{Text: "I begin."})
	d.add(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanActive}, {Text: "Write"}}})
	d.add(cli.TextDelta{Text: "\n\nNow I write."})
	if !d.add(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanDone}, {Text: "Write", State: cli.PlanActive}, {Text: "Test"}}}).urgent {
		t.Error("a change of the plan is not shown")
	}
	if d.add(cli.PlanChanged{Steps: []cli.PlanStep{{Text: "Read", State: cli.PlanDone}, {Text: "Write", State: cli.PlanActive}, {Text: "Test"}}}).urgent {
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

// Of a long plan the card shows what is done in one line, and what comes next.
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
	d.add(cli.PlanChanged{Steps: steps})
	got := d.segments[0].rendered().Text
	if !strings.HasPrefix(got, "📋 Plan 20/40\n☑ 20 steps done\n☐ step 20\n") || !strings.HasSuffix(got, "☐ step 29\n… and 10 more") {
		t.Errorf("the card shows %s", got)
	}
}

// Whatever becomes of a plan, messages that were begun stay within Telegram's limit.
func TestAPlanNeverOverflowsItsMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDocument(false)
		starts := []position{{}}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			if rapid.Bool().Draw(t, "text") {
				d.add(cli.TextDelta{Text: strings.Repeat("word ", rapid.IntRange(1, 600).Draw(t, "words"))})
			} else {
				var steps []cli.PlanStep
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					steps = append(steps, cli.PlanStep{Text: strings.Repeat("x", rapid.IntRange(0, 200).Draw(t, "length")), State: rapid.SampledFrom([]cli.PlanState{cli.PlanOpen, cli.PlanDone}).Draw(t, "state")})
				}
				d.add(cli.PlanChanged{Steps: steps})
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
