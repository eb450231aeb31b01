package menu

import (
	"context"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// permissionMenu is the menu of /permissions.
type permissionMenu struct {
	frame
	service Service
	now     orchestrator.Permissions
	page    int
	showing permissionPage
	lasts   time.Duration // duration of bypass mode
	// chosen is nil until the user presses a button that makes a choice. It then stores this choice in the
	// orchestrator.
	chosen func(ctx context.Context, by orchestrator.Press) (said, short string, err error)
}

// permissionPage is a page of the menu.
type permissionPage int

const (
	pageModes  permissionPage = iota
	pageBypass                // asks the user to confirm bypass mode
	pageRules
	pageTools
)

// meaningOf returns one line that explains a permission mode.
func meaningOf(p lang.Printer, mode cli.PermissionMode) string {
	switch mode {
	case cli.Plan:
		return p.Text("menu.plan")
	case cli.Ask:
		return p.Text("menu.ask")
	case cli.AcceptEdits:
		return p.Text("menu.accept-edits")
	case cli.Auto:
		return p.Text("menu.auto")
	case cli.Bypass:
		return p.Text("menu.bypass")
	}
	return ""
}

// Permissions answers "/permissions". If args is the name of a mode, Permissions sets this mode. If args is empty, it
// returns a menu. Users must confirm bypass mode with a button, because agents then need no approvals.
func (k *Menus) Permissions(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	m, err := k.permissionMenu(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	if args == "" {
		return k.open(by.Conversation, m), nil
	}
	if words := strings.Fields(args); words[0] == "tools" {
		return k.tools(ctx, by, m, words[1:])
	}
	mode, lasts, ok := modeAndTime(args)
	if lasts > 0 {
		m.lasts = lasts
	}
	switch {
	case !ok && mode == cli.Bypass:
		return tgapi.Page{Text: p.Text("menu.bypass-needs-time")}, nil
	case !ok:
		return tgapi.Page{Text: p.Text("menu.no-such-permission", modeNames(p))}, nil
	case m.refused(mode):
		return tgapi.Page{Text: m.line(mode)}, nil
	case mode == cli.Bypass:
		m.showing = pageBypass
		return k.open(by.Conversation, m), nil
	}
	return tgapi.Page{Text: m.setText(mode)}, k.service.SetPermission(ctx, by.Conversation, mode, by.Person)
}

func (k *Menus) permissionMenu(ctx context.Context, in orchestrator.ConversationID) (*permissionMenu, error) {
	now, err := k.service.Permissions(ctx, in)
	if err != nil {
		return nil, err
	}
	return &permissionMenu{
		frame: frame{action: PermissionAction, lang: k.lang.Of(in.Chat)}, service: k.service, now: now,
		lasts: orchestrator.DefaultBypass,
	}, nil
}

// modeAndTime parses the name of a mode. After "bypass", a duration may follow.
func modeAndTime(text string) (mode cli.PermissionMode, lasts time.Duration, ok bool) {
	if mode, ok := modeNamed(text); ok {
		return mode, 0, true
	}
	name, rest, _ := strings.Cut(text, " ")
	if mode, ok = modeNamed(name); !ok || mode != cli.Bypass {
		return "", 0, false
	}
	lasts, err := render.ReadSpan(rest)
	return mode, lasts, err == nil && lasts > 0 && lasts <= orchestrator.MostBypass
}

func (m *permissionMenu) setText(mode cli.PermissionMode) string {
	text := m.lang.Text("menu.permission-set") + "\n" + m.line(mode)
	if mode == cli.Bypass {
		text += " " + m.lang.Text("menu.bypass-until", m.lang.Span(m.lasts))
	}
	return text
}

// line explains a mode. The explanation has a second line if the conversation's agent supports only parts of the mode.
func (m *permissionMenu) line(mode cli.PermissionMode) string {
	line := m.modeLine(mode)
	if why := m.now.Cannot[mode]; why != "" {
		line += "\n  " + m.lang.Text("menu.permission-here", why)
	}
	return line
}

// refused reports whether the agent of the conversation does not support a mode at all.
func (m *permissionMenu) refused(mode cli.PermissionMode) bool {
	return slices.Contains(m.now.Refused, mode)
}

func (m *permissionMenu) modeLine(mode cli.PermissionMode) string {
	return string(mode) + ": " + meaningOf(m.lang, mode)
}

// modeNamed returns the mode with the given name. "accept edits" and "acceptEdits" also mean accept-edits.
func modeNamed(name string) (cli.PermissionMode, bool) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "")
	for _, mode := range cli.PermissionModes() {
		if strings.EqualFold(plain.Replace(string(mode)), plain.Replace(name)) {
			return mode, true
		}
	}
	return "", false
}

func modeNames(p lang.Printer) string {
	var names []string
	for _, mode := range cli.PermissionModes() {
		names = append(names, string(mode))
	}
	return p.List(names...)
}

func (m *permissionMenu) press(o op) state {
	modes := cli.PermissionModes()
	switch kind := string(o.kind); {
	case kind == opClose:
		return stateClosed
	case kind == opBack:
		m.showing, m.page = pageModes, 0
	case kind == opRules && m.showing == pageModes && len(m.now.Rules) > 0:
		m.showing = pageRules
	case kind == opTools && m.showing == pageModes:
		m.showing = pageTools
	case m.showing == pageRules:
		return m.pressRules(o)
	case m.showing == pageTools:
		return m.pressTools(o)
	case kind == opConfirm && m.showing == pageBypass:
		m.chosen = m.setBypass
		return stateDone
	case kind == opPick && m.showing == pageModes && o.arg >= 0 && o.arg < len(modes) && !m.refused(modes[o.arg]):
		if modes[o.arg] == cli.Bypass {
			m.showing = pageBypass
			return stateOpen
		}
		m.chosen = func(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
			err = m.service.SetPermission(ctx, by.Conversation, modes[o.arg], by.Person)
			return m.setText(modes[o.arg]), m.lang.Text("menu.permission-short", modes[o.arg]), err
		}
		return stateDone
	}
	return stateOpen
}

func (m *permissionMenu) view() tgapi.Page {
	switch m.showing {
	case pageBypass:
		return tgapi.Page{
			Text: m.lang.Text("menu.confirm-bypass", m.lang.Span(m.lasts)),
			Keyboard: tgapi.Keyboard{{{Text: m.lang.Text("menu.confirm-bypass-yes"), Data: m.data(opConfirm, 0)}},
				{{Text: m.lang.Text("common.cancel"), Data: m.data(opClose, 0)}}},
		}
	case pageRules:
		return m.viewRules()
	case pageTools:
		return m.viewTools()
	}
	return m.viewModes()
}

func (m *permissionMenu) viewModes() tgapi.Page {
	var b strings.Builder
	mode := render.WithBypassLeft(m.lang, m.now.Mode, m.now.BypassUntil, time.Now())
	now := m.lang.Text("menu.now", mode)
	if m.refused(m.now.Mode) {
		now = m.lang.Text("menu.now-refused", mode, render.AgentName(m.lang, m.now.Agent))
	}
	b.WriteString(now + "\n\n" + m.lang.Text("menu.which-permission"))
	var keyboard tgapi.Keyboard
	for i, mode := range cli.PermissionModes() {
		b.WriteString("\n" + m.line(mode))
		if m.refused(mode) {
			continue
		}
		keyboard = append(keyboard, []tgapi.Button{
			{Text: render.Marked(string(mode), mode == m.now.Mode), Data: m.data(opPick, i)},
		})
	}
	if n := len(m.now.Rules); n > 0 {
		b.WriteString("\n\n" + m.lang.Text("menu.rules-beside", n))
		keyboard = append(keyboard, []tgapi.Button{
			{Text: m.lang.Text("menu.rules-button", n), Data: m.data(opRules, 0)},
		})
	}
	keyboard = append(keyboard, []tgapi.Button{{Text: m.lang.Text("menu.tools-button"), Data: m.data(opTools, 0)}})
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

func (m *permissionMenu) unchanged() string { return m.modeLine(m.now.Mode) }

func (m *permissionMenu) store(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
	return m.chosen(ctx, by)
}

func (m *permissionMenu) setBypass(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
	err = m.service.Bypass(ctx, by.Conversation, m.lasts, by.Person)
	return m.setText(cli.Bypass), m.lang.Text("menu.permission-short", cli.Bypass), err
}
