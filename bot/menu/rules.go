package menu

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// This file contains the page of the permissions menu that lists the users' rules, with a button to delete each one.

// Maximum lengths of a rule on the page and in a button, in characters.
const (
	ruleShown  = 300
	ruleButton = 40
)

func (m *permissionMenu) pressRules(o op) state {
	switch kind := string(o.kind); {
	case kind == opPage && o.arg >= 0 && o.arg < tgapi.Pages(len(m.now.Rules)):
		m.page = o.arg
	case kind == opPick && o.arg >= 0 && o.arg < len(m.now.Rules):
		m.chosen = func(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
			return m.revoke(ctx, by, m.now.Rules[o.arg])
		}
		return stateDone
	}
	return stateOpen
}

func (m *permissionMenu) viewRules() tgapi.Page {
	var b strings.Builder
	b.WriteString(m.lang.Text("menu.rules") + "\n")
	var keyboard tgapi.Keyboard
	from, to, pager := m.paged(m.page, len(m.now.Rules))
	for i, r := range m.now.Rules[from:to] {
		fmt.Fprintf(&b, "\n%d. %s · %s", from+i+1, ruleText(m.lang, r, ruleShown), ruleScope(m.lang, r))
		keyboard = append(keyboard, []tgapi.Button{{
			Text: fmt.Sprintf("🗑 %d. %s", from+i+1, ruleText(m.lang, r, ruleButton)), Data: m.data(opPick, from+i),
		}})
	}
	keyboard = append(keyboard, pager...)
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.backButton(), m.closeButton()})}
}

func ruleText(p lang.Printer, r orchestrator.Rule, most int) string {
	return render.Cut(render.OneLine(render.Revealed(render.Rule(p, r.Text))), most)
}

// ruleScope describes where and for how long a rule applies.
func ruleScope(p lang.Printer, r orchestrator.Rule) string {
	agent, dir := render.AgentName(p, r.Agent), render.Cut(r.Dir, 100)
	if r.Session != "" {
		return p.Text("menu.rule-in-session", agent, dir)
	}
	return p.Text("menu.rule-for-good", agent, dir)
}

func (m *permissionMenu) revoke(ctx context.Context, by orchestrator.Press,
	rule orchestrator.Rule) (said, short string, err error) {
	text := ruleText(m.lang, rule, ruleShown)
	err = m.service.Revoke(ctx, rule.ID, by)
	switch {
	case errors.Is(err, orchestrator.ErrNoRule):
		return m.lang.Text("menu.no-such-rule", text), m.lang.Text("menu.rule-gone"), nil
	case err != nil:
		return "", "", err
	}
	said = m.lang.Text("menu.revoked", text) + "\n" + m.lang.Text("menu.revoked-next")
	return said, m.lang.Text("menu.revoked-short"), nil
}
