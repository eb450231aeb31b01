package judge

import (
	"slices"
	"strconv"
	"strings"

	"ductor/test/ordeal/scenario"
)

// unapprovedEffects finds effects that need permission and that no user has allowed. It also returns the violations
// that repeatedDecisions finds.
func unapprovedEffects(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		for _, e := range f.effects[token] {
			_, number, _ := strings.Cut(e.Name, ".")
			i, err := strconv.Atoi(number)
			if p := f.prompts[token]; err != nil || i >= len(p.Acts) || p.Acts[i] != (scenario.Ask{}) {
				continue
			}
			if !f.allowedBefore(token, e) {
				all = append(all, Violation{Token: token,
					Detail: e.Name + " happened, and no user who may had allowed it"})
			}
		}
	}
	return append(all, repeatedDecisions(f)...)
}

// allowedBefore reports whether a user had allowed an effect before it happened. The user must be allowed to decide,
// and must have pressed a button on a message that showed the effect. It is also sufficient if an earlier press created
// a rule or chose a permission mode that allows everything.
func (f *facts) allowedBefore(token scenario.Token, e AgentEvent) bool {
	s := f.sent[token]
	for _, p := range f.Presses {
		if p.At.After(e.At) || !listed(p.By) || private(s.In) && string(p.By) != string(s.In) {
			continue
		}
		here := p.Chat == s.Chat || p.In == s.In // a prompt from the webhook has no Chat
		if here && isOne(p.Label, scenario.AllowOnce, scenario.AllowRule) && strings.Contains(p.Text, e.Name) {
			return true
		}
		if p.In != s.In {
			continue
		}
		if isOne(p.Label, "approval.accept-edits", "approval.begin-and-edit") ||
			strings.Contains(strings.ToLower(p.Label+p.Text), "bypass") {
			return true
		}
	}
	return slices.ContainsFunc(f.Scenario.Options.Settings, func(o scenario.Setting) bool {
		return o.Key == "permissions.mode" && strings.Contains(string(o.Value), "bypass")
	})
}

// repeatedDecisions finds requests for permission that were decided more often than the prompt was allowed to run.
func repeatedDecisions(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		decided := map[string]int{}
		for _, e := range f.events[token] {
			if e.What == Allowed || e.What == Denied {
				decided[e.Name]++
			}
			if decided[e.Name] > f.runs(token) {
				all = append(all, Violation{Token: token, Detail: e.Name + " was decided more than once"})
			}
		}
	}
	return all
}
