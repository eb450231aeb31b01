package approval

import (
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// sameInputBytes is the maximum length of an input for which ductor offers a rule. Longer inputs rarely repeat, and
// users do not read them to the end.
const sameInputBytes = 2000

// offeredRules returns the two rules that a user can create when allowing a request. The first applies in the session,
// the second in the whole conversation. If ductor does not offer one of the rules, its Kind is empty. Each rule also
// allows the request itself.
func offeredRules(a orchestrator.ApprovalRequest) (session, lasting orchestrator.Rule) {
	p := a.Request
	if !canAutoApprove(a) || p.Tool == cli.PlanTool || p.Tool == "" {
		return orchestrator.Rule{}, orchestrator.Rule{}
	}
	base := orchestrator.Rule{Conversation: a.Conversation, Agent: a.Agent, Tool: p.Tool, Dir: a.Dir,
		Sandbox: a.Sandbox}
	if p.Tool == cli.ProjectTool {
		return orchestrator.Rule{}, projectRule(base, *p)
	}
	rule := func(kind orchestrator.RuleKind, value, text string) orchestrator.Rule {
		r := base
		r.Kind, r.Value, r.Text = kind, value, fmt.Sprintf("%s(%s)", p.Tool, text)
		return r
	}
	if command := commandOf(a); command != "" {
		session = rule(orchestrator.RuleCommand, command, command)
		if lastingCommand(command) {
			lasting = session
		}
		for _, prefix := range openEnded() {
			if matchPrefix(prefix, command, a.Links) {
				lasting = rule(orchestrator.RulePrefix, prefix, prefix+" *")
			}
		}
	} else if editsBelow(a) {
		session = rule(orchestrator.RuleEdits, a.Dir, "any file below "+a.Dir+" that is not hidden")
	} else if p.Effect.Reach != cli.ReachUnknown && len(p.Input) <= sameInputBytes {
		session = rule(orchestrator.RuleSame, digestOf(a), "exactly this: "+string(p.Input))
	}
	if session.Kind != "" {
		session.Session = a.Session
	}
	return session, lasting
}

// covers reports whether a rule allows a request. It also checks the limits for the kind of rule, because it does not
// trust the stored rule.
func covers(r orchestrator.Rule, a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if !canAutoApprove(a) || p.Tool == cli.PlanTool || r.Tool != p.Tool ||
		r.Agent != a.Agent || r.Dir != a.Dir || r.Sandbox != a.Sandbox ||
		r.Conversation != a.Conversation || r.Session != "" && r.Session != a.Session {
		return false
	}
	if p.Tool == cli.ProjectTool {
		return r.Kind == orchestrator.RuleSame && r.Value != "" && r.Value == projectDigest(*p)
	}
	switch r.Kind {
	case orchestrator.RuleCommand:
		return r.Value != "" && r.Value == commandOf(a) && (r.Session != "" || lastingCommand(r.Value))
	case orchestrator.RulePrefix:
		return matchPrefix(r.Value, commandOf(a), a.Links)
	case orchestrator.RuleEdits:
		return r.Session != "" && r.Value == a.Dir && editsBelow(a)
	case orchestrator.RuleSame:
		return r.Session != "" && r.Value == digestOf(a)
	}
	return false
}

// editsBelow reports whether a request only writes files that are below the turn's directory and not hidden. The mode
// accept-edits allows such requests.
func editsBelow(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	return p != nil && p.OnlyEdits() && !slices.ContainsFunc(p.Changes, func(c cli.FileChanged) bool {
		writes := c.Kind == cli.FileAdded || c.Kind == cli.FileUpdated || c.Kind == cli.FileReplaced
		return !writes || !cli.VisibleBelow(a.Dir, c.Path)
	})
}
