package menu

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/tools"
	"ductor/lang"
	"ductor/orchestrator"
)

// This file contains the page of the permissions menu that limits which tools agents may use.

// tools answers "/permissions tools". Words such as "no shell web" or "only read search" limit the tools, and "all"
// removes the limits. Without words, tools returns the page with the limits.
func (k *Menus) tools(ctx context.Context, by orchestrator.Press, m *permissionMenu,
	words []string) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	var list cli.ToolList
	switch {
	case len(words) == 0:
		m.showing = pageTools
		return k.open(by.Conversation, m), nil
	case len(words) == 1 && words[0] == "all":
	case len(words) > 1 && words[0] == "no":
		list.Denied = words[1:]
	case len(words) > 1 && words[0] == "only":
		list.Only = words[1:]
	default:
		return tgapi.Page{Text: p.Text("menu.tools-usage", p.List(tools.Kinds()...))}, nil
	}
	err := k.service.SetTools(ctx, by.Conversation, list, by.Person)
	if errors.Is(err, orchestrator.ErrBadChoice) {
		return tgapi.Page{Text: p.Text("menu.tools-usage", p.List(tools.Kinds()...))}, nil
	}
	return tgapi.Page{Text: m.toolsSet(list)}, err
}

// pressTools handles a button that allows or denies a kind of tools, or that allows all tools.
func (m *permissionMenu) pressTools(o op) state {
	kinds, list := tools.Kinds(), cli.ToolList{Only: m.now.Tools.Only, Denied: slices.Clone(m.now.Tools.Denied)}
	switch kind := string(o.kind); {
	case kind == opConfirm:
		list = cli.ToolList{}
	case kind == opPick && o.arg >= 0 && o.arg < len(kinds):
		name := kinds[o.arg]
		if i := slices.Index(list.Denied, name); i >= 0 {
			list.Denied = slices.Delete(list.Denied, i, i+1)
		} else {
			list.Denied = append(list.Denied, name)
		}
	default:
		return stateOpen
	}
	m.chosen = func(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
		err = m.service.SetTools(ctx, by.Conversation, list, by.Person)
		return m.toolsSet(list), m.lang.Text("menu.tools-short"), err
	}
	return stateDone
}

func (m *permissionMenu) viewTools() tgapi.Page {
	text := m.lang.Text("menu.tools-here", listText(m.lang, m.now.Tools))
	for _, other := range m.now.OtherTools {
		if !other.Empty() {
			text += "\n" + m.lang.Text("menu.tools-configured", listText(m.lang, other))
		}
	}
	if m.now.Unheld != nil {
		text += "\n" + m.lang.Text("menu.tools-unheld", render.AgentName(m.lang, m.now.Agent),
			m.now.Unheld.Why().In(m.lang))
	}
	var keyboard tgapi.Keyboard
	for i, kind := range tools.Kinds() {
		label := m.lang.Text("menu.tools-deny", kind)
		if slices.Contains(m.now.Tools.Denied, kind) {
			label = m.lang.Text("menu.tools-permit", kind)
		}
		keyboard = append(keyboard, []tgapi.Button{{Text: label, Data: m.data(opPick, i)}})
	}
	if !m.now.Tools.Empty() {
		keyboard = append(keyboard, []tgapi.Button{
			{Text: m.lang.Text("menu.tools-all-button"), Data: m.data(opConfirm, 0)},
		})
	}
	text += "\n\n" + m.lang.Text("menu.tools-usage", m.lang.List(tools.Kinds()...))
	return tgapi.Page{Text: text, Keyboard: append(keyboard, []tgapi.Button{m.backButton(), m.closeButton()})}
}

func (m *permissionMenu) toolsSet(list cli.ToolList) string {
	return m.lang.Text("menu.permission-set") + "\n" + m.lang.Text("menu.tools-here", listText(m.lang, list))
}

// listText describes the limits in a list of tools.
func listText(p lang.Printer, l cli.ToolList) string {
	var parts []string
	if len(l.Only) > 0 {
		parts = append(parts, p.Text("menu.tools-only", render.Cut(p.List(l.Only...), ruleShown)))
	}
	if len(l.Denied) > 0 {
		parts = append(parts, p.Text("menu.tools-never", render.Cut(p.List(l.Denied...), ruleShown)))
	}
	if len(parts) == 0 {
		return p.Text("menu.tools-all")
	}
	return strings.Join(parts, "; ")
}
