package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ductor/cli"
)

// RightsOf says whose rights a turn has.
type RightsOf string

// Whose rights a turn can have. All but RightsOfChat use neither the permission mode nor the rules of the chat.
const (
	RightsOfChat   RightsOf = ""       // the mode and the rules that were chosen in its conversation
	RightsOfMember RightsOf = "member" // of a user who is not listed: at most ask, and no rule
	RightsOfJob    RightsOf = "job"    // unattended: what the job's own configuration grants, and no more
)

// Rights is what an agent may do for a prompt without being allowed to by a button. It is stored with the turn, and a
// turn that repeats another has the same. The zero value is the rights of the chat.
type Rights struct {
	Of RightsOf
	// The rest is of RightsOfJob.
	Mode  cli.PermissionMode // empty: the stricter of the configured default and ask
	Rules []string           // patterns that go through; see ParsePattern
	Tools []string           // the only tools the agent has, in its own words; empty: all
}

// ofChat says whether the choices of the conversation count.
func (r Rights) ofChat() bool { return r.Of == RightsOfChat }

// Equal says whether two turns may do the same.
func (r Rights) Equal(other Rights) bool {
	return r.Of == other.Of && r.Mode == other.Mode && slices.Equal(r.Rules, other.Rules) && slices.Equal(r.Tools, other.Tools)
}

// Check says what is wrong with the rights of a job, in words for whoever wrote them.
func (r Rights) Check() error {
	if r.Mode != "" && !slices.Contains(cli.PermissionModes(), r.Mode) {
		return fmt.Errorf("there is no permission mode %q", r.Mode)
	}
	for _, rule := range r.Rules {
		if err := ParsePattern(rule); err != nil {
			return err
		}
	}
	return nil
}

// AtMostAsk is the stricter of a mode and ask.
func AtMostAsk(mode cli.PermissionMode) cli.PermissionMode {
	if mode == cli.Plan {
		return cli.Plan
	}
	return cli.Ask
}

// modeFor is the permission mode of a turn.
func (o *Orchestrator) modeFor(conv Conversation, r Rights) cli.PermissionMode {
	if r.ofChat() {
		return o.permissionOf(conv)
	}
	return cmp.Or(r.Mode, AtMostAsk(o.opts.Permission))
}

// grant puts into a request what a turn may do unasked. What the configuration allows every chat is no grant to a turn
// with rights of its own; what it denies is denied to all.
func (o *Orchestrator) grant(req *cli.Request, conv Conversation, r Rights) {
	req.Permission, req.Tools, req.DeniedTools = o.modeFor(conv, r), r.Tools, o.opts.DeniedTools
	if r.ofChat() {
		req.AllowedTools = o.opts.AllowedTools
	}
	forever := req.Permission == cli.Bypass && !(r.ofChat() && o.bypassed(conv)) // else it asks once the bypass is over
	req.Attended = o.opts.Asks != nil && !forever
}

// ruleFor finds what lets an ask of the turn through: a rule of the conversation, or a pattern of its job. It returns
// the rule as users read it, empty for none.
func (a *approvals) ruleFor(ask Ask) (string, error) {
	if rights := a.turn.Prompt.Rights; !rights.ofChat() {
		i := slices.IndexFunc(rights.Rules, func(text string) bool { return patternCovers(text, ask) })
		if i < 0 {
			return "", nil
		}
		return rights.Rules[i], nil
	}
	return a.o.chatRule(a.keep, ask)
}

// chatRule finds a rule of the conversation that lets an ask through.
func (o *Orchestrator) chatRule(ctx context.Context, a Ask) (string, error) {
	if a.Approval == nil {
		return "", nil
	}
	rules, err := o.opts.Store.RulesOf(ctx, a.Conversation)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.covers(a) })
	if i < 0 {
		return "", nil
	}
	return rules[i].Text, nil
}
