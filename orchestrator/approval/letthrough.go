package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
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
	if err == nil && rule == "" {
		rule = r.allowedTool(approval)
	}
	return rule, err
}

// modeCovers reports whether the permission mode of the turn allows the request. Agents may read files in every mode.
// For an agent in a terminal, modeCovers returns false: such an agent makes a request only if its own mode does not
// allow the action.
func (r *Requests) modeCovers(a orchestrator.ApprovalRequest) bool {
	if r.turn.Turn.Prompt.Rights.Of == orchestrator.RightsOfTerminal {
		return false
	}
	return readsBelow(a) || r.turn.Mode == cli.AcceptEdits && editsBelow(a)
}

// allowedTool returns the entry in the configuration's list of allowed tools that allows the request, or "". An entry
// such as "Tool(command)" or "Tool(./path)" allows only matching requests. An entry such as "Tool" allows every use of
// the tool, except for changes of files that the mode accept-edits would not allow. In plan mode, allowedTool ignores
// all entries except those for reading tools.
//
// ductor passes only the web tools of this list to agents (see tools.Limit). Agents ask ductor before they use any
// other tool, because only ductor can check what a request touches.
func (r *Requests) allowedTool(a orchestrator.ApprovalRequest) string {
	p, allowed := a.Request, r.turn.Allowed
	if r.turn.Mode == cli.Plan {
		allowed = tools.Reading(allowed)
	}
	if p.Tool == cli.PlanTool || p.Tool == cli.ProjectTool || !p.Allowable() {
		return ""
	}
	if (len(p.Changes) > 0 || tools.ChangesFiles(p.Tool)) && !editsBelow(a) {
		return ""
	}
	i := slices.IndexFunc(allowed, func(name string) bool { return allows(name, a) })
	if i < 0 {
		return ""
	}
	return allowed[i]
}

// allows reports whether an entry of the list of allowed tools allows the request.
func allows(entry string, a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if server, ok := cli.NamedServer(entry); ok {
		if p.Effect.Server != "" {
			return server == p.Effect.Server
		}
		return cli.ToolList{Only: []string{entry}}.Permits(p.Tool)
	}
	name, command, pattern := strings.Cut(entry, "(")
	if !pattern {
		return tools.Covers(a.Agent, name, p.Tool)
	}
	if rule, ok := parsePathRule(entry); ok {
		return rule.covers(a)
	}
	command = openPattern(command)
	return tools.Covers(a.Agent, name, p.Tool) && patternCovers(fmt.Sprintf("%s(%s", p.Tool, command), a)
}

// openPattern changes the end of a pattern from the form "git log:*)", which some agents use, to the form "git log *)",
// which parsePattern expects. It returns any other text unchanged.
func openPattern(command string) string {
	if first, ok := strings.CutSuffix(command, ":*)"); ok {
		return first + " *)"
	}
	return command
}

// forbids reports whether the turn's tool lists forbid the tool of a request. It returns false for plans and for
// project settings, because these requests are not about a tool.
func (r *Requests) forbids(a orchestrator.ApprovalRequest) bool {
	p, lists := a.Request, r.turn.Tools
	if of := r.own[a.AgentIDs[0]].of; of.Agent != "" {
		lists = of.Tools
	}
	return p != nil && p.Tool != cli.PlanTool && p.Tool != cli.ProjectTool && lists.Forbids(p.Tool)
}

// canAutoApprove reports whether a rule or a permission mode may allow this request. If it returns false, only a user
// may allow the request. The caller must check separately that the request does not touch ductor's own files
// (touchesOwn).
func canAutoApprove(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	outside := func(l orchestrator.Link) bool { return l.Outside }
	return p != nil && p.Missing == "" && !p.Widens() && !slices.ContainsFunc(a.Links, outside)
}

// touchesOwn reports whether a request mentions one of ductor's own files: as a file to change, in the tool's input, or
// as a word of the command.
func (s *Service) touchesOwn(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if p == nil {
		return false
	}
	words := wordsOf(p, p.Effect.Command)
	if len(p.Changes) == 0 && p.Tool != cli.PlanTool && p.Tool != cli.ProjectTool {
		words = append(words, cli.ShellWords(p.Title+"\n"+p.Detail)...)
	}
	return p.Names(s.opts.Protected, a.Dir, words)
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
