package codex

import (
	"encoding/json"

	"ductor/cli"
)

// total is what a thread had used before a turn: codex exec reports a thread's running total.
type total struct {
	Usage cli.Usage
	Known bool
}

// before looks up what req's thread used so far. The run of a turn that is resumed has it in its mark.
func (p *Provider) before(req cli.Request, left *cli.LeftRun) total {
	if req.Resume == "" {
		return total{Known: true}
	}
	if left != nil {
		for _, m := range left.Marks {
			var t total
			if m.Turn == req.Turn && json.Unmarshal([]byte(m.Note), &t.Usage) == nil {
				t.Known = true
				return t
			}
		}
		return total{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u, known := p.totals[req.Resume]
	return total{u, known}
}

// mark is what is recorded beside the run, so that the next process knows the total too. It is none where
// there is nothing to tell: the process was started for this turn, which is recorded already.
func (t total) mark(turn cli.TurnID, left *cli.LeftRun) cli.Mark {
	if left != nil || !t.Known || t.Usage == (cli.Usage{}) {
		return cli.Mark{}
	}
	note, err := json.Marshal(t.Usage)
	if err != nil { // numbers always can be written
		return cli.Mark{}
	}
	return cli.Mark{Turn: turn, Note: string(note)}
}

// used gives what one turn used, from the thread's running total.
func (p *Provider) used(thread cli.AgentSessionID, before total, now cli.Usage) cli.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals[thread] = now
	if !before.Known {
		// The total counts turns of the previous ductor process, which were counted then.
		return cli.Usage{}
	}
	return now.Sub(before.Usage)
}
