package approval

import (
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// autoApproval returns the reason why a request is allowed without asking a user: a rule, the permission mode, or a
// tool that the configuration allows. It returns "" if nothing allows the request. The caller must check separately
// that the request does not touch ductor's own files (touchesOwn).
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

// modeCovers reports whether the permission mode of the turn allows the request. Agents may read files in every mode.
// modeCovers returns false for an agent in a terminal, because such an agent applies its own mode before it makes a
// request.
func (r *Requests) modeCovers(a orchestrator.ApprovalRequest) bool {
	if r.turn.Turn.Prompt.Rights.Of == orchestrator.RightsOfTerminal {
		return false
	}
	return readsBelow(a) || r.turn.Mode == cli.AcceptEdits && editsBelow(a)
}

// allowedTool checks the request against the list of allowed tools in the configuration. It returns the matching entry,
// or "". An entry such as "Tool(command)" allows only matching requests. An entry such as "Tool" allows all uses of the
// tool, but changes of files only as far as the mode accept-edits allows them.
//
// Some agents support such a list themselves, and do not ask ductor about these tools.
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

// forbids reports whether the turn's tool lists forbid the tool of a request. It returns false for plans and for project
// settings, because these requests are not about a tool.
func (r *Requests) forbids(a orchestrator.ApprovalRequest) bool {
	p, tools := a.Request, r.turn.Tools
	if of := r.own[a.AgentIDs[0]].of; of.Agent != "" {
		tools = of.Tools
	}
	return p != nil && p.Tool != cli.PlanTool && p.Tool != cli.ProjectTool && tools.Forbids(p.Tool)
}

// canAutoApprove reports whether a rule or a permission mode may allow this request at all. The caller must check
// separately that the request does not touch ductor's own files (touchesOwn).
func canAutoApprove(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	outside := func(l orchestrator.Link) bool { return l.Outside }
	return p != nil && p.Missing == "" && !p.Widens() && !slices.ContainsFunc(a.Links, outside)
}

// touchesOwn reports whether a request mentions one of ductor's own files: as a file to change, in the tool's input, or
// as a word of the command.
func (s *Service) touchesOwn(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	return p != nil && p.Names(s.opts.Protected, a.Dir, wordsOf(p, p.Effect.Command))
}

// ruleFor returns the rule of the conversation, or the pattern of the job, that allows a request. The result is the
// text of the rule for users, or "" if no rule allows the request.
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

// chatRule returns the rule of the conversation that allows a request, or "".
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
