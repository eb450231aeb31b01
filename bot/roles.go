package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// roles is the menu of who the agent is to be.
type roles struct {
	desk   Desk
	closer *updates.Finisher
	menus  *menus
}

// roleMenu is one open menu of roles.
type roleMenu struct {
	menuFrame
	desk    Desk
	names   []string // the first is empty: none
	current string
	page    int
	chosen  string
}

const noRolesYet = "No roles are configured. A role is a system prompt with a name: add one to config.toml and start ductor again.\n\n" +
	"[roles.reviewer]\nprompt = \"You review code. Point at bugs first, style last.\""

// start answers "/role": with a name it sets the role at once, without it opens the menu.
func (c *roles) start(ctx context.Context, r updates.Request) error {
	names := c.desk.Roles()
	if len(names) == 0 {
		c.closer.Answer(ctx, r.In, noRolesYet, nil)
		return nil
	}
	names = append([]string{""}, names...)
	if r.Args != "" {
		return c.chooseByName(ctx, r, names)
	}
	st, err := c.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		return err
	}
	m := &roleMenu{menuFrame: menuFrame{act: actRole}, desk: c.desk, names: names, current: st.Role}
	m.page = tgapi.PageOf(max(slices.Index(names, st.Role), 0))
	return c.menus.offer(ctx, r, m)
}

func (c *roles) chooseByName(ctx context.Context, r updates.Request, names []string) error {
	name, ok := roleNamed(r.Args, names)
	if !ok {
		c.closer.Answer(ctx, r.In, noSuchRole(r.Args, names), nil)
		return nil
	}
	text, err := setRole(ctx, c.desk, r.In.Conversation, name)
	if err != nil {
		return err
	}
	c.closer.Answer(ctx, r.In, text, nil)
	return nil
}

// roleNamed finds a role by its name as it is written, else by one that differs in case only. A role that
// is called "none" goes before having none.
func roleNamed(name string, names []string) (string, bool) {
	for _, same := range []func(string) bool{
		func(s string) bool { return s != "" && s == name },
		func(s string) bool { return s != "" && strings.EqualFold(s, name) },
		func(s string) bool { return s == "" && strings.EqualFold(roleLabel(s), name) },
	} {
		if i := slices.IndexFunc(names, same); i >= 0 {
			return names[i], true
		}
	}
	return "", false
}

func noSuchRole(name string, names []string) string {
	var labels []string
	for _, n := range names {
		labels = append(labels, roleLabel(n))
	}
	return fmt.Sprintf("There is no role %q. There are: %s.", render.Cut(name, 60), render.Cut(strings.Join(labels, ", "), 1000))
}

// roleLabel is a role's name as buttons and sentences show it.
func roleLabel(name string) string {
	if name == "" {
		return "none"
	}
	if label := strings.Join(strings.Fields(name), " "); label != "" {
		return render.Cut(label, 60)
	}
	return fmt.Sprintf("%q", render.Cut(name, 20))
}

// setRole stores a role and says what follows. Who answers is said too, because a role may name an agent.
func setRole(ctx context.Context, desk Desk, id orchestrator.ConversationID, name string) (string, error) {
	if err := desk.SetRole(ctx, id, name); err != nil {
		return "", err
	}
	text := "From the next turn on the agent plays no role"
	if name != "" {
		text = "From the next turn on the agent plays: " + roleLabel(name)
	}
	if st, err := desk.Status(ctx, id); err == nil && st.Agent != "" {
		text += " (" + render.ChoiceText(st.Agent, st.Model, st.Effort) + ")"
	}
	return text + ". It still knows what was said here; /new begins without that.", nil
}

func (m *roleMenu) turn(op menuOp) menuState {
	switch kind := string(op.kind); {
	case kind == opClose:
		return menuClosed
	case kind == opPage && op.arg >= 0 && op.arg < tgapi.Pages(len(m.names)):
		m.page = op.arg
	case kind == opPick && op.arg >= 0 && op.arg < len(m.names):
		m.chosen = m.names[op.arg]
		return menuDone
	}
	return menuOpen
}

func (m *roleMenu) view() (string, tgapi.Keyboard) {
	var keyboard tgapi.Keyboard
	from, to := tgapi.PageBounds(m.page, len(m.names))
	for i, name := range m.names[from:to] {
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(roleLabel(name), name == m.current), Data: m.data(opPick, from+i)}})
	}
	keyboard = append(keyboard, m.pager(m.page, tgapi.Pages(len(m.names)))...)
	return "Now: " + roleLabel(m.current) + "\n\nWhich role is the agent to play?", append(keyboard, []tgapi.Button{m.closeButton()})
}

func (m *roleMenu) unchanged() string { return "role " + roleLabel(m.current) }

func (m *roleMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	said, err = setRole(ctx, m.desk, m.conv, m.chosen)
	return said, "Role: " + roleLabel(m.chosen), err
}
