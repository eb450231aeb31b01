package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"ductor/cli"
)

// sameInputBytes is how long an input may be for a rule that lets it through again: longer ones hardly come
// twice, and no user reads them to the end.
const sameInputBytes = 2000

// offer says what an ask could be let through by from now on: session is a rule for the session, lasting one
// for the conversation. Kind is empty where there is none. Both cover the ask itself.
func offer(a Ask) (session, lasting Rule) {
	p := a.Approval
	if p == nil || p.Tool == cli.PlanTool || p.Tool == "" || p.Widens() || p.Missing != "" {
		return Rule{}, Rule{}
	}
	base := Rule{Conversation: a.Conversation, Agent: a.Agent, Tool: p.Tool, Dir: a.Dir}
	if p.Tool == cli.ProjectTool {
		return Rule{}, projectRule(base, *p)
	}
	rule := func(kind RuleKind, value, text string) Rule {
		r := base
		r.Kind, r.Value, r.Text = kind, value, fmt.Sprintf("%s(%s)", p.Tool, text)
		return r
	}
	if command, ok := commandOf(*p, a.Dir); ok {
		session = rule(RuleCommand, command, command)
		if plainCommand(command) {
			lasting = session
		}
		for _, prefix := range openEnded() {
			if matchPrefix(prefix, command) {
				lasting = rule(RulePrefix, prefix, prefix+" *")
			}
		}
	} else if editsBelow(a) {
		session = rule(RuleEdits, a.Dir, "any file below "+a.Dir+" that is not hidden")
	} else if _, ok := fieldsOf(p.Input); ok && len(p.Input) <= sameInputBytes {
		session = rule(RuleSame, digestOf(a), "exactly this: "+string(p.Input))
	}
	if session.Kind != "" {
		session.Session = a.Session
	}
	return session, lasting
}

// covers says whether r lets a through. What is stored is not believed: a rule counts only as far as its kind
// may go.
func (r Rule) covers(a Ask) bool {
	p := a.Approval
	if p == nil || p.Tool == cli.PlanTool || p.Widens() || p.Missing != "" || r.Tool != p.Tool || r.Agent != a.Agent || r.Dir != a.Dir ||
		r.Conversation != a.Conversation || r.Session != "" && r.Session != a.Session {
		return false
	}
	if p.Tool == cli.ProjectTool {
		return r.Kind == RuleSame && r.Value != "" && r.Value == projectDigest(*p)
	}
	switch r.Kind {
	case RuleCommand:
		command, ok := commandOf(*p, a.Dir)
		return ok && command == r.Value && (r.Session != "" || plainCommand(command))
	case RulePrefix:
		command, ok := commandOf(*p, a.Dir)
		return ok && matchPrefix(r.Value, command)
	case RuleEdits:
		return r.Session != "" && r.Value == a.Dir && editsBelow(a)
	case RuleSame:
		return r.Session != "" && r.Value == digestOf(a)
	}
	return false
}

// Permissions says what the agents of a conversation may do unasked; see AskDesk.
func (o *Orchestrator) Permissions(ctx context.Context, in ConversationID) (Permissions, error) {
	conv, err := o.opts.Store.Conversation(ctx, in)
	if err != nil {
		return Permissions{}, fmt.Errorf("load conversation: %w", err)
	}
	rules, err := o.opts.Store.RulesOf(ctx, in)
	if err != nil {
		return Permissions{}, fmt.Errorf("load rules: %w", err)
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.Session != "" && r.Session != conv.Session })
	p := Permissions{Mode: o.permissionOf(conv), Rules: rules}
	if o.bypassed(conv) {
		p.BypassUntil = conv.BypassUntil
	}
	_, at, err := o.whereabouts(ctx, conv)
	if err != nil {
		return p, nil // which turns will say
	}
	if who, err := o.choice(ctx, conv, at); err == nil { // else none can be used, likewise
		p.Agent, p.Cannot = who.agent, o.limits(at, who.agent)
	}
	return p, nil
}

// limits says of each permission mode what an agent does not do; modes it does all of are not in it.
func (o *Orchestrator) limits(in cli.Sandbox, agent cli.Agent) map[cli.PermissionMode]string {
	limits := map[cli.PermissionMode]string{}
	for _, mode := range cli.PermissionModes() {
		if why := o.opts.Gateway.Cannot(in, agent, mode); why != "" {
			limits[mode] = why
		}
	}
	return limits
}

// Revoke takes a rule back; see AskDesk.
func (o *Orchestrator) Revoke(ctx context.Context, id RuleID, by Press) error {
	ok, err := o.opts.Store.RevokeRule(ctx, id, by.Conversation, by.Person, o.now())
	if err != nil {
		return fmt.Errorf("revoke rule: %w", err)
	}
	if !ok {
		return ErrNoRule
	}
	return nil
}
