package menu

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// permissionMenu is one open menu of what the agent may do without asking.
type permissionMenu struct {
	frame
	service    Service
	current    cli.PermissionMode
	cannot     map[cli.PermissionMode]string // what the agent does not do
	rules      []orchestrator.Rule           // that let through what was allowed before
	listing    bool                          // the rules are shown, not the modes
	page       int
	until      time.Time     // when the bypass ends that counts now; zero for none
	lasts      time.Duration // how long a bypass would last
	confirming bool          // bypass was pressed and is to be confirmed
	chosen     cli.PermissionMode
	revoked    *orchestrator.Rule // chosen instead of a mode
}

// meaningOf says in a line what a mode means.
func meaningOf(mode cli.PermissionMode) string {
	switch mode {
	case cli.Plan:
		return "reads and plans, and changes nothing."
	case cli.Ask:
		return "what writes or runs is asked for here, with buttons."
	case cli.AcceptEdits:
		return "edits in the working directory go through."
	case cli.Auto:
		return "the agent's own judgement."
	case cli.Bypass:
		return "everything goes through."
	}
	return ""
}

// Permissions answers "/permissions": with a mode it sets it at once, without one it opens the menu. Bypass is confirmed
// either way.
func (k *Menus) Permissions(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	now, err := k.service.Permissions(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	m := &permissionMenu{frame: frame{action: PermissionAction}, service: k.service, current: now.Mode, until: now.BypassUntil,
		lasts: orchestrator.DefaultBypass, rules: now.Rules, cannot: now.Cannot}
	if args == "" {
		return k.open(by.Conversation, m)
	}
	mode, lasts, ok := modeAndTime(args)
	if lasts > 0 {
		m.lasts = lasts
	}
	switch {
	case !ok && mode == cli.Bypass:
		return tgapi.Page{Text: "Write how long it lasts, such as /permissions bypass 30m, a day at most."}, nil
	case !ok:
		return tgapi.Page{Text: "There is no such permission mode. There are: " + modeNames() + "."}, nil
	case mode == cli.Bypass:
		m.confirming = true
		return k.open(by.Conversation, m)
	}
	return tgapi.Page{Text: m.setText(mode)}, k.service.SetPermission(ctx, by.Conversation, mode, by.Person)
}

// modeAndTime reads a mode, and after bypass how long it lasts.
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
	text := "Set. It counts from the next turn on.\n" + m.line(mode)
	if mode == cli.Bypass {
		text += " It ends in " + render.Span(m.lasts) + ", or when ductor is restarted."
	}
	return text
}

// line explains a mode, and what the agent of the conversation does not do of it.
func (m *permissionMenu) line(mode cli.PermissionMode) string {
	line := modeLine(mode)
	if why := m.cannot[mode]; why != "" {
		line += "\n  Here: " + why + "."
	}
	return line
}

func modeLine(mode cli.PermissionMode) string { return string(mode) + ": " + meaningOf(mode) }

// modeNamed finds a mode by its name; "accept edits" and "acceptEdits" are accept-edits.
func modeNamed(name string) (cli.PermissionMode, bool) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "")
	for _, mode := range cli.PermissionModes() {
		if strings.EqualFold(plain.Replace(string(mode)), plain.Replace(name)) {
			return mode, true
		}
	}
	return "", false
}

func modeNames() string {
	var names []string
	for _, mode := range cli.PermissionModes() {
		names = append(names, string(mode))
	}
	return strings.Join(names, ", ")
}

func (m *permissionMenu) press(o op) state {
	modes := cli.PermissionModes()
	switch kind := string(o.kind); {
	case kind == opClose:
		return stateClosed
	case kind == opBack:
		m.listing, m.page = false, 0
	case kind == opRules && !m.confirming && len(m.rules) > 0:
		m.listing = true
	case m.listing:
		return m.pressRules(o)
	case kind == opConfirm && m.confirming:
		m.chosen = cli.Bypass
		return stateDone
	case kind == opPick && !m.confirming && o.arg >= 0 && o.arg < len(modes):
		if modes[o.arg] == cli.Bypass {
			m.confirming = true
			return stateOpen
		}
		m.chosen = modes[o.arg]
		return stateDone
	}
	return stateOpen
}

func (m *permissionMenu) view() tgapi.Page {
	if m.confirming {
		return tgapi.Page{
			Text: "With bypass the agent runs any command and changes any file that you could, without asking, for " +
				render.Span(m.lasts) + ". Sure?",
			Keyboard: tgapi.Keyboard{{{Text: "Yes, bypass everything", Data: m.data(opConfirm, 0)}}, {{Text: "Cancel", Data: m.data(opClose, 0)}}},
		}
	}
	if m.listing {
		return m.viewRules()
	}
	var b strings.Builder
	b.WriteString("Now: " + render.WithBypassLeft(m.current, m.until, time.Now()) + "\n\nWhat may the agent do without asking?")
	var keyboard tgapi.Keyboard
	for i, mode := range cli.PermissionModes() {
		b.WriteString("\n" + m.line(mode))
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(string(mode), mode == m.current), Data: m.data(opPick, i)}})
	}
	if n := len(m.rules); n > 0 {
		b.WriteString("\n\nBesides, " + render.Count(n, "rule lets", "rules let") + " through what was allowed here.")
		keyboard = append(keyboard, []tgapi.Button{{Text: fmt.Sprintf("Rules (%d)…", n), Data: m.data(opRules, 0)}})
	}
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

func (m *permissionMenu) unchanged() string { return modeLine(m.current) }

func (m *permissionMenu) store(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
	if m.revoked != nil {
		return m.revoke(ctx, by)
	}
	set := func() error { return m.service.SetPermission(ctx, m.conv, m.chosen, by.Person) }
	if m.chosen == cli.Bypass {
		set = func() error { return m.service.Bypass(ctx, m.conv, m.lasts, by.Person) }
	}
	if err := set(); err != nil {
		return "", "", err
	}
	return m.setText(m.chosen), "Permissions: " + string(m.chosen), nil
}
