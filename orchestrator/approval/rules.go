package approval

import (
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// sameInputBytes limits the length of an input that a rule may allow again: longer inputs rarely repeat, and no user
// reads them to the end.
const sameInputBytes = 2000

// offeredRules returns the rules that a user can create from an approval: session for the session, lasting for the
// conversation. Kind is empty if there is none. Both rules cover the approval itself.
func offeredRules(a orchestrator.ApprovalRequest) (session, lasting orchestrator.Rule) {
	p := a.Request
	if p == nil || p.Tool == cli.PlanTool || p.Tool == "" || p.Widens() || p.Missing != "" {
		return orchestrator.Rule{}, orchestrator.Rule{}
	}
	base := orchestrator.Rule{Conversation: a.Conversation, Agent: a.Agent, Tool: p.Tool, Dir: a.Dir, Sandbox: a.Sandbox}
	if p.Tool == cli.ProjectTool {
		return orchestrator.Rule{}, projectRule(base, *p)
	}
	rule := func(kind orchestrator.RuleKind, value, text string) orchestrator.Rule {
		r := base
		r.Kind, r.Value, r.Text = kind, value, fmt.Sprintf("%s(%s)", p.Tool, text)
		return r
	}
	if command, ok := commandOf(*p, a.Dir); ok {
		session = rule(orchestrator.RuleCommand, command, command)
		if lastingCommand(command) {
			lasting = session
		}
		for _, prefix := range openEnded() {
			if matchPrefix(prefix, command, p.Links) {
				lasting = rule(orchestrator.RulePrefix, prefix, prefix+" *")
			}
		}
	} else if editsBelow(a) {
		session = rule(orchestrator.RuleEdits, a.Dir, "any file below "+a.Dir+" that is not hidden")
	} else if _, ok := fieldsOf(p.Input); ok && len(p.Input) <= sameInputBytes {
		session = rule(orchestrator.RuleSame, digestOf(a), "exactly this: "+string(p.Input))
	}
	if session.Kind != "" {
		session.Session = a.Session
	}
	return session, lasting
}

// covers reports whether r allows a. It does not trust the stored rule: a rule applies only within the limits of its
// kind.
func covers(r orchestrator.Rule, a orchestrator.ApprovalRequest) bool {
	p := a.Request
	if p == nil || p.Tool == cli.PlanTool || p.Widens() || p.Missing != "" || r.Tool != p.Tool || r.Agent != a.Agent || r.Dir != a.Dir || r.Sandbox != a.Sandbox ||
		r.Conversation != a.Conversation || r.Session != "" && r.Session != a.Session {
		return false
	}
	if p.Tool == cli.ProjectTool {
		return r.Kind == orchestrator.RuleSame && r.Value != "" && r.Value == projectDigest(*p)
	}
	switch r.Kind {
	case orchestrator.RuleCommand:
		command, ok := commandOf(*p, a.Dir)
		return ok && command == r.Value && (r.Session != "" || lastingCommand(command))
	case orchestrator.RulePrefix:
		command, ok := commandOf(*p, a.Dir)
		return ok && matchPrefix(r.Value, command, p.Links)
	case orchestrator.RuleEdits:
		return r.Session != "" && r.Value == a.Dir && editsBelow(a)
	case orchestrator.RuleSame:
		return r.Session != "" && r.Value == digestOf(a)
	}
	return false
}
