package menu

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// roleMenu is one open menu of roles.
type roleMenu struct {
	frame
	service Service
	names   []string // the first is empty: none
	current string
	page    int
	chosen  string
}

// Role answers "/role": with a name it sets the role at once, without one it opens the menu.
func (k *Menus) Role(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	names := k.service.Roles()
	names = append([]string{""}, names...)
	if args != "" {
		return k.roleByName(ctx, by.Conversation, args, names)
	}
	st, err := k.service.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	m := &roleMenu{frame: frame{action: RoleAction}, service: k.service, names: names, current: st.Role}
	m.page = tgapi.PageOf(max(slices.Index(names, st.Role), 0))
	return k.open(by.Conversation, m)
}

func (k *Menus) roleByName(ctx context.Context, in orchestrator.ConversationID, name string, names []string) (tgapi.Page, error) {
	p := k.lang.Of(in.Chat)
	role, ok := roleNamed(p, name, names)
	if !ok {
		return tgapi.Page{Text: noSuchRole(p, name, names)}, nil
	}
	text, err := setRole(ctx, p, k.service, in, role)
	return tgapi.Page{Text: text}, err
}

// roleNamed finds a role by its name as it is written, else by one that differs in case only. A role that
// is called "none" goes before having none.
func roleNamed(p lang.Printer, name string, names []string) (string, bool) {
	for _, same := range []func(string) bool{
		func(s string) bool { return s != "" && s == name },
		func(s string) bool { return s != "" && strings.EqualFold(s, name) },
		func(s string) bool { return s == "" && strings.EqualFold(roleLabel(p, s), name) },
	} {
		if i := slices.IndexFunc(names, same); i >= 0 {
			return names[i], true
		}
	}
	return "", false
}

func noSuchRole(p lang.Printer, name string, names []string) string {
	var labels []string
	for _, n := range names {
		labels = append(labels, roleLabel(p, n))
	}
	return p.Text("menu.no-such-role", render.Cut(name, 60), render.Cut(strings.Join(labels, ", "), 1000))
}

// roleLabel is a role's name as buttons and sentences show it.
func roleLabel(p lang.Printer, name string) string {
	if name == "" {
		return p.Text("menu.no-role")
	}
	if label := strings.Join(strings.Fields(name), " "); label != "" {
		return render.Cut(label, 60)
	}
	return strconv.Quote(render.Cut(name, 20))
}

// setRole stores a role and says what follows. The text names the agent, because a role may choose it.
func setRole(ctx context.Context, p lang.Printer, service Service, id orchestrator.ConversationID, name string) (string, error) {
	if err := service.SetRole(ctx, id, name); err != nil {
		return "", err
	}
	st, err := service.Status(ctx, id)
	choice := render.ChoiceText(p, st.Agent, st.Model, st.Effort)
	var text string
	switch known := err == nil && st.Agent != ""; {
	case name == "" && known:
		text = p.Text("menu.role-removed-with", choice)
	case name == "":
		text = p.Text("menu.role-removed")
	case known:
		text = p.Text("menu.role-set-with", roleLabel(p, name), choice)
	default:
		text = p.Text("menu.role-set", roleLabel(p, name))
	}
	return text + " " + p.Text("menu.role-knows"), nil
}

func (m *roleMenu) press(o op) state {
	switch kind := string(o.kind); {
	case kind == opClose:
		return stateClosed
	case kind == opPage && o.arg >= 0 && o.arg < tgapi.Pages(len(m.names)):
		m.page = o.arg
	case kind == opPick && o.arg >= 0 && o.arg < len(m.names):
		m.chosen = m.names[o.arg]
		return stateDone
	}
	return stateOpen
}

func (m *roleMenu) view() tgapi.Page {
	var keyboard tgapi.Keyboard
	from, to, pager := m.paged(m.page, len(m.names))
	for i, name := range m.names[from:to] {
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(roleLabel(m.lang, name), name == m.current), Data: m.data(opPick, from+i)}})
	}
	keyboard = append(keyboard, pager...)
	return tgapi.Page{
		Text:     m.lang.Text("menu.now", roleLabel(m.lang, m.current)) + "\n\n" + m.lang.Text("menu.which-role"),
		Keyboard: append(keyboard, []tgapi.Button{m.closeButton()}),
	}
}

func (m *roleMenu) unchanged() string {
	return m.lang.Text("menu.role-unchanged", roleLabel(m.lang, m.current))
}

func (m *roleMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	said, err = setRole(ctx, m.lang, m.service, m.conv, m.chosen)
	return said, m.lang.Text("menu.role-short", roleLabel(m.lang, m.chosen)), err
}
