package orchestrator

import (
	"slices"

	"ductor/cli"
)

// RuledByMode stands in Ask.Ruled where no rule but the permission mode let an edit through.
const RuledByMode = string(cli.AcceptEdits)

// letsThrough finds what lets an ask of the turn through without a user: a rule, or the permission mode. It returns it as
// users read it, empty for nothing. Nothing lets a request through that touches one of ductor's own files, asks for more
// than usual, or leaves out what it is about.
func (a *approvals) letsThrough(ask Ask) (string, error) {
	if p := ask.Approval; p == nil || p.Widens() || p.Missing != "" || a.o.touchesOwn(ask) {
		return "", nil
	}
	rule, err := a.ruleFor(ask)
	if err == nil && rule == "" && a.mode == cli.AcceptEdits && editsBelow(ask) {
		rule = RuledByMode
	}
	return rule, err
}

// touchesOwn says whether a request names one of ductor's own files: as a file that it changes, or as a text of its input.
func (o *Orchestrator) touchesOwn(a Ask) bool {
	p := a.Approval
	if p == nil {
		return false
	}
	changes := func(c cli.FileChanged) bool { return cli.Touches(o.opts.Protected, a.Dir, c.Path) }
	fields := func(f cli.Field) bool { return cli.NamesOne(o.opts.Protected, a.Dir, f.Value) }
	return slices.ContainsFunc(p.Changes, changes) || slices.ContainsFunc(p.Fields, fields) ||
		cli.Names(o.opts.Protected, a.Dir, p.Input)
}
