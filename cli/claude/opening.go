package claude

import (
	"slices"

	"ductor/cli"
)

// opening is the beginning of a turn: Claude is told how to work, and asked once it agreed. All of it is done on
// the goroutine of the turn.
type opening struct {
	turn    *liveTurn
	want    turnSettings
	changes []change // not agreed to yet
	past    bool     // what the previous process of ductor sent is not known yet
	begun   bool
	failure *cli.Failure
}

// due begins as soon as that may be. It is called whenever one of the conditions changed.
func (o *opening) due() {
	t := o.turn
	if o.begun || o.past || t.p.ended || t.p.taken || t.p.foreign || t.ctx.Err() != nil {
		return
	}
	o.begun = true
	if t.prompt == nil {
		if err := t.writePrompt(); err != nil {
			o.failure = cli.AsFailure(agent, err)
			t.run.stream.CloseInput() // it has nothing to do, and ends
			return
		}
	}
	if rest := t.left.cutOff(o.changes, t.prompt); rest != nil {
		t.send(rest)
		t.isAsked()
		return
	}
	if len(o.changes) == 0 {
		t.send(t.prompt)
		t.isAsked()
		return
	}
	var all []byte
	for _, c := range o.changes {
		all = append(all, c.line...)
	}
	t.send(all)
}

// reply takes Claude's answer to one of the changes. A change that it refuses ends the turn before it asked
// anything, and the process, whose settings are unknown then.
func (o *opening) reply(r *controlReply) (end bool) {
	t := o.turn
	i := slices.IndexFunc(o.changes, func(c change) bool { return c.id == r.RequestID })
	if i < 0 || !o.begun {
		return false
	}
	refused := o.changes[i]
	o.changes = slices.Delete(slices.Clone(o.changes), i, i+1)
	switch {
	case r.Subtype == "error":
		t.p.outcome.Err = cli.Failf(refused.kind, agent, "it does not take the %s: %s", refused.what, oneLine(r.Error))
		t.p.mustStop = true
		return true
	case t.ctx.Err() != nil:
		t.p.mustStop = true
		return true
	case len(o.changes) == 0:
		t.send(t.prompt)
		t.isAsked()
	}
	return false
}
