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

// roles is the list of roles that an agent can get in a conversation. It implements the interface choices. The first
// element is "", which means no role.
type roles struct {
	service Service
	all     []string
}

// Role answers "/role". If args is the name of a role, Role sets this role. If args is empty, it returns a menu.
func (k *Menus) Role(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	r := roles{k.service, append([]string{""}, k.service.Roles()...)}
	if args != "" {
		p := k.lang.Of(by.Conversation.Chat)
		name, ok := roleNamed(p, args, r.all)
		if !ok {
			return tgapi.Page{Text: noSuchRole(p, args, r.all)}, nil
		}
		said, _, err := r.choose(ctx, p, by.Conversation, name)
		return tgapi.Page{Text: said}, err
	}
	st, err := k.service.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	return k.openList(by.Conversation, RoleAction, r, st.Role), nil
}

// roleNamed looks up a role by name. It tries an exact match first, then a match that ignores case, and finally the
// translated word for "no role".
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
	return p.Text("menu.no-such-role", render.Cut(name, 60), render.Cut(p.List(labels...), 1000))
}

func roleLabel(p lang.Printer, name string) string {
	if name == "" {
		return p.Text("menu.no-role")
	}
	if label := strings.Join(strings.Fields(name), " "); label != "" {
		return render.Cut(label, 60)
	}
	return strconv.Quote(render.Cut(name, 20))
}

func (r roles) names() []string { return r.all }

func (roles) label(p lang.Printer, name string) string { return roleLabel(p, name) }

func (roles) text(p lang.Printer, now string) string {
	return p.Text("menu.now", roleLabel(p, now)) + "\n\n" + p.Text("menu.which-role")
}

func (roles) stays(p lang.Printer, now string) string {
	return p.Text("menu.role-unchanged", roleLabel(p, now))
}

// choose implements the method of the interface choices. The returned texts name the agent, because some roles also
// select an agent.
func (r roles) choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID,
	name string) (said, short string, err error) {
	if err := r.service.SetRole(ctx, in, name); err != nil {
		return "", "", err
	}
	st, err := r.service.Status(ctx, in)
	choice := render.ChoiceText(p, st.Agent, st.Model, st.Effort)
	switch known := err == nil && st.Agent != ""; {
	case name == "" && known:
		said = p.Text("menu.role-removed-with", choice)
	case name == "":
		said = p.Text("menu.role-removed")
	case known:
		said = p.Text("menu.role-set-with", roleLabel(p, name), choice)
	default:
		said = p.Text("menu.role-set", roleLabel(p, name))
	}
	return said + " " + p.Text("menu.role-knows"), p.Text("menu.role-short", roleLabel(p, name)), nil
}
