package menu

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/nearest"
	"ductor/lang"
	"ductor/orchestrator"
)

// accounts is the list of an agent's accounts. It implements the interface choices.
type accounts struct {
	orchestrator.AccountChoice
	service Service
	at      time.Time
	missing string          // name that the user typed, if no account has this name; otherwise empty
	offered []cli.MenuEntry // accounts for which the menu has a button
}

// Account answers "/account". If args is the name of an account, Account selects this account for the agent. If args is
// empty, it returns a menu of all accounts.
func (k *Menus) Account(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	choice, err := k.service.Accounts(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	a := accounts{AccountChoice: choice, service: k.service, at: k.now(), offered: choice.All}
	names := a.typedNames(p)
	switch i, named := names[strings.ToLower(args)]; {
	case len(a.All) < 2:
		return tgapi.Page{Text: k.oneAccount(p, choice.Agent)}, nil
	case args == "":
	case named:
		said, _, err := a.choose(ctx, p, by.Conversation, string(a.All[i].Account))
		return tgapi.Page{Text: said}, err
	default:
		a.missing = render.Cut(args, 60)
		if near, found := nearest.Of(args, slices.Collect(maps.Keys(names))); found {
			a.offered = []cli.MenuEntry{a.All[names[near]]}
		}
	}
	return k.openList(by.Conversation, AccountAction, a, string(choice.Account)), nil
}

// oneAccount returns a text that explains how to add accounts, for an agent that has only the default account.
func (k *Menus) oneAccount(p lang.Printer, agent cli.Agent) string {
	table := ""
	if k.offers.AccountTable != nil {
		table = k.offers.AccountTable(agent)
	}
	switch {
	case table == "":
		return p.Text("menu.only-account", agent.Name())
	case strings.HasPrefix(table, "agents.acp."):
		return p.Text("menu.one-account-reload", agent.Name(), table, string(agent))
	}
	return p.Text("menu.one-account", agent.Name(), table, string(agent))
}

// typedNames maps the names that users may type, in lower case, to indexes of accounts. The default account has two
// names: a translated name, and "default", which no other account can have.
func (a accounts) typedNames(p lang.Printer) map[string]int {
	names := map[string]int{}
	for i, e := range a.All {
		names[strings.ToLower(e.Account.Label(p))] = i
		names[cmp.Or(string(e.Account), "default")] = i
	}
	return names
}

func (a accounts) names() (all []string) {
	for _, e := range a.offered {
		all = append(all, string(e.Account))
	}
	return all
}

func (a accounts) label(p lang.Printer, name string) string { return cli.Account(name).Label(p) }

func (a accounts) full(p lang.Printer, name string) string {
	return p.Text("limit.with", a.Agent.Name(), a.label(p, name))
}

func (a accounts) text(p lang.Printer, now string) string {
	head := p.Text("menu.now", a.full(p, now)) + "\n\n" + p.Text("menu.which-account", a.Agent.Name())
	if a.missing != "" {
		head = p.Text("menu.no-such-account", a.Agent.Name(), a.missing)
	}
	for _, e := range a.offered {
		facts := []string{a.loginText(p, e)}
		if shares := cli.LimitsOf(a.Limits, e.Agent, e.Account).Current(a.at).Shares(p, a.at); shares != "" {
			facts = append(facts, shares)
		}
		if line := strings.TrimPrefix(strings.Join(facts, " · "), " · "); line != "" {
			head += "\n" + p.Text("common.because", e.Account.Label(p), line)
		}
	}
	return head
}

// loginText tells users whether an account is logged in. It returns "" if this is unknown.
func (a accounts) loginText(p lang.Printer, e cli.MenuEntry) string {
	var f *cli.Failure
	switch {
	case errors.As(e.Err, &f) && f.Kind == cli.Refused:
		return f.Reason
	case e.Err != nil || e.Auth.Problem != nil:
		return ""
	case e.Auth.State == cli.Authenticated:
		return p.Text("menu.logged-in")
	}
	return unusableBecause(p, e)
}

func (a accounts) stays(p lang.Printer, now string) string { return a.full(p, now) }

func (a accounts) choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID, name string) (said,
	short string, err error) {
	if err := a.service.SetAccount(ctx, in, a.Agent, cli.Account(name)); err != nil {
		return "", "", err
	}
	return chosenText(ctx, a.service, p, in, a.full(p, name), a.Agent), a.full(p, name), nil
}
