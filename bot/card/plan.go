package card

import (
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// planList is the agent's to-do list in a card. The card edits the list while the turn runs, and folds it when the turn
// ends.
type planList struct {
	lang   lang.Printer
	steps  []cli.PlanStep
	room   int // maximum length in UTF-16 units; a longer list would leave no space for the text after it
	folded bool
}

const (
	planShown  = 10
	planMargin = 300
	stepMost   = 80
)

// setPlan replaces the plan. It reports whether the card changes.
func (d *document) setPlan(steps []cli.PlanStep) bool {
	var p *planList
	for _, s := range d.segments {
		if s.kind == planSegment {
			p = s.plan
		}
	}
	if len(steps) == 0 { // the agent removed its plan, but the card continues to show the old plan
		return false
	}
	if p == nil {
		p = &planList{lang: d.lang}
		d.push(&segment{kind: planSegment, plan: p})
	}
	if slices.Equal(p.steps, steps) {
		return false
	}
	p.steps = steps
	if p.room == 0 {
		p.room = render.Len(p.list()) + planMargin
	}
	return true
}

// slack returns the number of UTF-16 units by which the plan may still grow.
func (p *planList) slack() int {
	if p.folded {
		return 0
	}
	return max(p.room-render.Len(p.rendered().Text), 0)
}

func (p *planList) rendered() render.Text {
	text := render.Shorten(render.Plain(p.list()), p.room)
	if p.folded {
		return render.Styled(render.Expandable, text.Text)
	}
	return text
}

// list renders the plan, one step per line. If the plan is long, list omits finished steps at the start and further
// steps at the end, and shows how many steps it omits.
func (p *planList) list() string {
	lines := []string{p.title()}
	rest := p.steps
	if hidden := p.hidden(); hidden > 0 {
		lines = append(lines, p.lang.Text("card.plan-done", hidden))
		rest = rest[hidden:]
	}
	more := len(rest) - planShown
	for _, s := range rest[:min(len(rest), planShown)] {
		lines = append(lines, planSign(s.State)+" "+render.ShortLine(s.Text, stepMost))
	}
	if more > 0 {
		lines = append(lines, p.lang.Text("card.plan-more", more))
	}
	return strings.Join(lines, "\n")
}

func (p *planList) title() string {
	done := 0
	for _, s := range p.steps {
		if s.State == cli.PlanDone {
			done++
		}
	}
	return p.lang.Text("card.plan", done, len(p.steps))
}

func (p *planList) hidden() (n int) {
	for n < len(p.steps)-planShown && p.steps[n].State == cli.PlanDone {
		n++
	}
	return n
}

func planSign(s cli.PlanState) string {
	switch s {
	case cli.PlanDone:
		return "☑"
	case cli.PlanActive:
		return "◐"
	}
	return "☐"
}
