package approval

import (
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// letsThrough finds what lets an approval of the turn through without a user: a rule, the permission mode, or an allowed tool of the
// configuration. It returns it as users read it, empty for nothing. Nothing lets a request through that asks for more than usual or leaves out what it is about, nor, which
// the caller looks for, one that touches ductor's own files.
func (r *Requests) letsThrough(approval orchestrator.ApprovalRequest) (string, error) {
	if !mayPass(approval) {
		return "", nil
	}
	rule, err := r.ruleFor(approval)
	if err == nil && rule == "" && r.modeCovers(approval) {
		rule = orchestrator.RuledByMode
	}
	if err == nil && rule == "" && r.turn.Mode != cli.Plan {
		rule = r.allowedTool(approval)
	}
	return rule, err
}

// modeCovers reports whether the permission mode of the turn lets an approval through: every mode lets agents read. What a terminal
// asks, its own agent's mode has decided on.
func (r *Requests) modeCovers(a orchestrator.ApprovalRequest) bool {
	if r.turn.Turn.Prompt.Rights.Of == orchestrator.RightsOfTerminal {
		return false
	}
	return readsBelow(a) || r.turn.Mode == cli.AcceptEdits && editsBelow(a)
}

// allowedTool returns the allowed tool of the configuration that an approval is of, empty for none. One in parentheses allows what a pattern
// allows; the name alone allows each use, of files those that accept-edits accepts. Agents that know such a list do not ask; others do.
func (r *Requests) allowedTool(a orchestrator.ApprovalRequest) string {
	p := a.Request
	if p.Tool == cli.PlanTool || p.Tool == cli.ProjectTool || len(p.Changes) > 0 && !editsBelow(a) {
		return ""
	}
	i := slices.IndexFunc(r.turn.Allowed, func(name string) bool {
		return cli.ToolList{Only: []string{name}}.Permits(p.Tool) || strings.Contains(name, "(") && patternCovers(name, a)
	})
	if i < 0 {
		return ""
	}
	return r.turn.Allowed[i]
}

// permits says whether the lists of tools of the turn leave a request open. A plan, and the settings of a project, are no tools.
func (r *Requests) permits(a orchestrator.ApprovalRequest) bool {
	p, tools := a.Request, r.turn.Tools
	if of := r.own[a.AgentIDs[0]].of; of.Agent != "" {
		tools = of.Tools
	}
	return p == nil || p.Tool == cli.PlanTool || p.Tool == cli.ProjectTool || tools.Permits(p.Tool)
}

// mayPass says whether a rule or a mode may let a request through that does not touch ductor's own files; see touchesOwn.
func mayPass(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	return p != nil && !p.Widens() && p.Missing == ""
}

// touchesOwn reports whether a request names one of ductor's own files: as a file that it changes, as a text of its input, or as a word of
// its command.
func (s *Service) touchesOwn(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if p == nil {
		return false
	}
	changes := func(c cli.FileChanged) bool { return cli.Touches(s.opts.Protected, a.Dir, c.Path) }
	fields := func(f cli.Field) bool { return cli.NamesOne(s.opts.Protected, a.Dir, f.Value) }
	words := func(word string) bool { return cli.NamesOne(s.opts.Protected, a.Dir, word) }
	return slices.ContainsFunc(p.Changes, changes) || slices.ContainsFunc(p.Fields, fields) || slices.ContainsFunc(wordsOf(*p, a.Dir), words) ||
		cli.Names(s.opts.Protected, a.Dir, p.Input)
}

// ruleFor finds what lets an approval of the turn through: a rule of the conversation, or a pattern of its job. It returns
// the rule as users read it, empty for none.
func (r *Requests) ruleFor(approval orchestrator.ApprovalRequest) (string, error) {
	if rights := r.turn.Turn.Prompt.Rights; !rights.OfChat() {
		i := slices.IndexFunc(rights.Rules, func(text string) bool { return patternCovers(text, approval) })
		if i < 0 {
			return "", nil
		}
		return rights.Rules[i], nil
	}
	return r.s.chatRule(r.keep(), approval)
}

// chatRule finds a rule of the conversation that lets an approval through.
func (s *Service) chatRule(ctx context.Context, a orchestrator.ApprovalRequest) (string, error) {
	if a.Request == nil {
		return "", nil
	}
	rules, err := s.opts.Store.RulesOf(ctx, a.Conversation)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(rules, func(r orchestrator.Rule) bool { return covers(r, a) })
	if i < 0 {
		return "", nil
	}
	return rules[i].Text, nil
}
