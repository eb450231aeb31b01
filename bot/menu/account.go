package menu

import (
	"context"
	"errors"
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

// accounts are the accounts of an agent. It implements choices.
type accounts struct {
	orchestrator.AccountChoice
	service Service
	at      time.Time
	missing string          // the name of an account that does not exist; empty for none
	offered []cli.MenuEntry // the accounts with a button
}

// Account answers "/account". If args names an account, it sets the account at once. Otherwise it opens the menu.
func (k *Menus) Account(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	choice, err := k.service.Accounts(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	a := accounts{AccountChoice: choice, service: k.service, at: k.now(), offered: choice.All}
	switch i := slices.IndexFunc(a.All, func(e cli.MenuEntry) bool {
		return strings.EqualFold(string(e.Account), args) || strings.EqualFold(a.label(p, string(e.Account)), args)
	}); {
	case len(a.All) < 2:
		return tgapi.Page{Text: p.Text("menu.one-account", choice.Agent.Name(), tableOf(choice.Agent),
			string(choice.Agent))}, nil
	case args == "":
	case i >= 0:
		said, _, err := a.choose(ctx, p, by.Conversation, string(a.All[i].Account))
		return tgapi.Page{Text: said}, err
	default:
		a.missing = render.Cut(args, 60)
		if near, found := nearest.Of(args, a.names()); found {
			a.offered = []cli.MenuEntry{a.All[slices.Index(a.names(), near)]}
		}
	}
	return k.openList(by.Conversation, AccountAction, a, string(choice.Account)), nil
}

// tableOf returns the name of an agent's table in the configuration.
func tableOf(agent cli.Agent) string {
	if slices.Contains([]cli.Agent{"claude", "codex", "gemini", "copilot"}, agent) {
		return string(agent)
	}
	return "acp." + string(agent)
}

func (a accounts) names() (all []string) {
	for _, e := range a.offered {
		all = append(all, string(e.Account))
	}
	return all
}

func (a accounts) label(p lang.Printer, name string) string { return cli.Account(name).Label(p) }

// full returns the name of an account with its agent.
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

// loginText reports whether an account is logged in. It returns "" if that is unknown.
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
	return p.Text("menu.model-set", a.full(p, name)), a.full(p, name),
		a.service.SetAccount(ctx, in, a.Agent, cli.Account(name))
}
