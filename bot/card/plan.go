package card

import (
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// planList is the agent's plan as the card shows it: a list that changes in its place, and is folded in the end.
type planList struct {
	lang   lang.Printer
	steps  []cli.PlanStep
	room   int // how long it may become, in UTF-16 units: its message may be full behind it
	folded bool
}

// Bounds of a plan.
const (
	planShown  = 10 // steps that are listed
	planMargin = 300
	stepMost   = 80
)

// setPlan shows a plan in the place of the one before.
func (d *document) setPlan(steps []cli.PlanStep) bool {
	var p *planList
	for _, s := range d.segments {
		if s.kind == planSegment {
			p = s.plan
		}
	}
	if len(steps) == 0 { // the agent clears it away: what was done stays to be seen
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

// slack is how many units the plan may still grow by.
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

// list is the plan in lines. Of a long one it leaves out steps that are done, and the last ones.
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

// title says how many steps are done.
func (p *planList) title() string {
	done := 0
	for _, s := range p.steps {
		if s.State == cli.PlanDone {
			done++
		}
	}
	return p.lang.Text("card.plan", done, len(p.steps))
}

// hidden is how many steps at the beginning one line stands for, all of them done.
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
