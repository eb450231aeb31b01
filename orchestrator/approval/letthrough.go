package approval

import (
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// autoApproval returns the permission that allows a request without asking the user: a rule, the permission mode, or an
// allowed tool of the configuration. It returns "" if no permission does, or if the request asks for wider rights or is
// incomplete. The caller checks ductor's own files separately (touchesOwn).
func (r *Requests) autoApproval(approval orchestrator.ApprovalRequest) (string, error) {
	if !canAutoApprove(approval) {
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

// modeCovers reports whether the permission mode of the turn allows the request. Every mode allows agents to read.
// modeCovers returns false for requests of an agent in a terminal: that agent has already applied a mode of its own.
func (r *Requests) modeCovers(a orchestrator.ApprovalRequest) bool {
	if r.turn.Turn.Prompt.Rights.Of == orchestrator.RightsOfTerminal {
		return false
	}
	return readsBelow(a) || r.turn.Mode == cli.AcceptEdits && editsBelow(a)
}

// allowedTool returns the allowed tool of the configuration that matches the request, or "" if none does. An entry with
// parentheses allows the requests that match its pattern. An entry without parentheses allows every use of the tool,
// but only the file changes that accept-edits allows. Some agents support such a list and do not ask ductor;
// allowedTool serves the other agents.
func (r *Requests) allowedTool(a orchestrator.ApprovalRequest) string {
	p := a.Request
	if p.Tool == cli.PlanTool || p.Tool == cli.ProjectTool || len(p.Changes) > 0 && !editsBelow(a) {
		return ""
	}
	i := slices.IndexFunc(r.turn.Allowed, func(name string) bool {
		return cli.ToolList{Only: []string{name}}.Permits(p.Tool) || strings.Contains(name, "(") &&
			patternCovers(name, a)
	})
	if i < 0 {
		return ""
	}
	return r.turn.Allowed[i]
}

// permits reports whether the turn's tool lists permit the tool of a request. Plans and project settings are not tools.
func (r *Requests) permits(a orchestrator.ApprovalRequest) bool {
	p, tools := a.Request, r.turn.Tools
	if of := r.own[a.AgentIDs[0]].of; of.Agent != "" {
		tools = of.Tools
	}
	return p == nil || p.Tool == cli.PlanTool || p.Tool == cli.ProjectTool || tools.Permits(p.Tool)
}

// canAutoApprove reports whether a rule or mode may allow this request at all. The caller checks ductor's own files
// separately (touchesOwn).
func canAutoApprove(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	outside := func(l orchestrator.Link) bool { return l.Outside }
	return p != nil && p.Missing == "" && !p.Widens() && !slices.ContainsFunc(a.Links, outside)
}

// touchesOwn reports whether a request names one of ductor's own files. The name may be a file to change, a text in the
// input, or a word of the command.
func (s *Service) touchesOwn(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	names := func(word string) bool { return cli.NamesOne(s.opts.Protected, a.Dir, word) }
	return p != nil && (p.Names(s.opts.Protected, a.Dir) ||
		slices.ContainsFunc(wordsOf(p, p.Effect.Command), names))
}

// ruleFor returns the conversation's rule or the job's pattern that allows an approval, as users read it, or "" if
// there is none.
func (r *Requests) ruleFor(approval orchestrator.ApprovalRequest) (string, error) {
	if rights := r.turn.Turn.Prompt.Rights; !rights.OfChat() {
		i := slices.IndexFunc(rights.Rules, func(text string) bool { return patternCovers(text, approval) })
		if i < 0 {
			return "", nil
		}
		return rights.Rules[i], nil
	}
	return r.s.chatRule(r.recordContext(), approval)
}

// chatRule returns the conversation's rule that allows an approval.
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
