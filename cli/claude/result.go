package claude

import (
	"strings"

	"ductor/cli"
)

// result takes the line that ends a turn. It is not the end of ours when Claude began that
// turn, as it does when a background task is done.
func (p *parser) result(l *line) (end bool) {
	if !l.IsError || l.NumTurns > 0 { // a session that could not be resumed has another's id here
		p.name(l)
	}
	r := p.outcomeOf(l)
	if !p.ours(l) {
		p.handOver(r)
		p.foreign = false
		if p.onForeign != nil {
			p.onForeign()
		}
		return false
	}
	p.outcome = sum(p.outcome, r)
	return p.cut || p.steers == nil || p.steers.end()
}

// sum is the result of a turn for which Claude gave several, because a message that was sent in mid-turn came
// too late for the first.
func sum(former, last cli.Result) cli.Result {
	last.CostUSD += former.CostUSD
	last.Turns += former.Turns
	last.Usage = last.Usage.Add(former.Usage)
	for id, u := range former.ByModel {
		if last.ByModel == nil {
			last.ByModel = map[cli.ModelID]cli.Usage{}
		}
		last.ByModel[id] = last.ByModel[id].Add(u)
	}
	return last
}

// ours says whether a result ends the turn we asked for: Claude names an origin for one that no user
// asked for, unless our message joined it on the way.
func (p *parser) ours(l *line) bool {
	if l.Origin == nil || l.Origin.Kind == "" || l.Origin.Kind == "human" {
		return true
	}
	return p.taken
}

// handOver gives what a turn said that no user asked for to where it belongs, and takes it out of this one.
func (p *parser) handOver(r cli.Result) {
	if p.background == nil {
		return
	}
	r.Text = p.em.Answer()
	p.takeBack()
	p.background(r)
	p.denials = nil
}

func (p *parser) outcomeOf(l *line) cli.Result {
	if !l.IsError && l.Result != "" && p.em.Answer() == "" {
		p.text("result", l.Result) // an answer that came as no message: structured output
	}
	for _, d := range l.Denials {
		id := cli.ToolID(d.ID)
		p.deny(id, d.Tool, d.Input, p.calls[id].err)
	}
	r := cli.Result{Turns: l.NumTurns, Err: resultFailure(l.resultFields, l.Subtype, p.trouble)}
	r.CostUSD, r.ByModel = p.mem.spent(l.resultFields)
	r.Usage = totalUsage(r.ByModel, l.Usage)
	r.Denials = p.told()
	p.cut = strings.HasPrefix(l.Terminal, "aborted_")
	return r
}

// spent is what this turn cost: Claude's totals run since the process began.
func (m *memory) spent(r resultFields) (costUSD float64, byModel map[cli.ModelID]cli.Usage) {
	costUSD = r.TotalCostUSD
	if costUSD >= m.costUSD {
		costUSD -= m.costUSD
	}
	m.costUSD = r.TotalCostUSD
	for name, total := range r.ModelUsage {
		id := cli.ModelID(name)
		sum := cli.Usage{Input: total.Input, Output: total.Output, CacheRead: total.CacheRead, CacheWrite: total.CacheWrite}
		turn := sum.Sub(m.byModel[id])
		m.byModel[id] = sum
		if turn == (cli.Usage{}) {
			continue
		}
		if byModel == nil {
			byModel = map[cli.ModelID]cli.Usage{}
		}
		byModel[id] = turn
	}
	return costUSD, byModel
}

// totalUsage sums what the models used, sub-agents included; the turn's own count leaves those out.
func totalUsage(byModel map[cli.ModelID]cli.Usage, own *tokenUsage) cli.Usage {
	var sum cli.Usage
	for _, u := range byModel {
		sum = sum.Add(u)
	}
	if len(byModel) == 0 && own != nil {
		sum = cli.Usage{Input: own.Input, Output: own.Output, CacheRead: own.CacheRead, CacheWrite: own.CacheWrite}
	}
	return sum
}
