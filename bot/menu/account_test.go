package menu

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// /account shows each account with its log-in and its limits. A press in the same chat or its name chooses one.
func TestAccountMenu(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		now := time.Now()
		hours := cli.LimitWindow{Span: 5 * time.Hour}
		used := []cli.PlanLimit{{Window: hours, Used: 0.61, Resets: now.Add(time.Hour), Seen: now}}
		r.service.choice = orchestrator.AccountChoice{
			Agent: "claude", Account: "work",
			Limits: []cli.AccountLimits{{Agent: "claude", Account: "work", Limits: used}},
			All: []cli.MenuEntry{
				{Agent: "claude", Auth: cli.Auth{State: cli.Installed, Fix: "Run this"}},
				{Agent: "claude", Account: "work", Auth: cli.Auth{State: cli.Authenticated}},
				{Agent: "claude", Account: "home", Err: cli.ErrLoading},
			},
		}
		r.command("/account")
		for _, part := range []string{
			"Now: Claude (work)", "default: not logged in. Run this", "work: logged in · 61 % of 5 h",
		} {
			if !strings.Contains(r.page.Text, part) {
				t.Errorf("%q lacks %q", r.page.Text, part)
			}
		}
		r.pressIn(group, r.page.Keyboard[2][0].Data)
		r.press(r.page.Keyboard[2][0].Data)
		r.command("/account Default")
		r.command("/account wrk")
		if len(r.page.Keyboard) != 2 || !strings.Contains(r.page.Text, `no account "wrk"`) {
			t.Errorf("a mistyped name is answered with %+v", r.page)
		}
		r.press(r.page.Keyboard[0][0].Data)
		r.command("/account defualt")
		if len(r.page.Keyboard) != 2 || !strings.Contains(r.page.Keyboard[0][0].Text, "default") {
			t.Errorf("a mistyped default is answered with %+v", r.page)
		}
		r.command("/account something else")
		if len(r.page.Keyboard) != 4 {
			t.Errorf("an unknown name is answered with %+v", r.page)
		}
		want := []string{"account 7/0 claude@home", "account 7/0 claude@", "account 7/0 claude@work"}
		if !slices.Equal(r.service.calls, want) {
			t.Errorf("the calls are %q, want %q", r.service.calls, want)
		}
	})
}

// Waiting messages to the agent use the chosen account, too. Messages to other agents do not.
func TestTheChoiceOfAnAccountNamesTheWaitingMessagesThatUseIt(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		r.service.choice = orchestrator.AccountChoice{Agent: "claude",
			All: []cli.MenuEntry{{Agent: "claude"}, {Agent: "claude", Account: "work"}}}
		r.service.status.Queue = []orchestrator.Wants{{Agent: "claude", Model: "opus"}, {}, {Agent: "codex"}}
		if r.command("/account work"); r.page.Text != "Your next message and 2 waiting go to Claude (work)." {
			t.Errorf("it says %q", r.page.Text)
		}
	})
}

// inLanguage is a store with the language of the owner.
type inLanguage lang.Language

func (l inLanguage) Languages(context.Context) ([]lang.Choice, error) {
	return []lang.Choice{{ID: owner, Chosen: lang.Language(l)}}, nil
}

func (inLanguage) SaveLanguage(context.Context, lang.Choice) error { return nil }

// In every language, "default" names the default account, besides the word of the language.
func TestTheDefaultAccountInEveryLanguage(t *testing.T) {
	for _, l := range lang.Languages() {
		withMenus(t, func(t *testing.T, r *rig) {
			choices, err := lang.OpenChoices(t.Context(), inLanguage(l), 0)
			if err != nil {
				t.Fatal(err)
			}
			r.lang = choices
			r.service.choice = orchestrator.AccountChoice{Agent: "claude", Account: "work",
				All: []cli.MenuEntry{{Agent: "claude"}, {Agent: "claude", Account: "work"}}}
			r.command("/account default")
			r.command("/account " + cli.Account("").Label(l.Printer()))
			if want := []string{"account 7/0 claude@", "account 7/0 claude@"}; !slices.Equal(r.service.calls, want) {
				t.Errorf("%s: the calls are %q, want %q", l, r.service.calls, want)
			}
			r.command("/account defalt")
			if len(r.page.Keyboard) != 2 {
				t.Errorf("%s: a mistyped default is answered with %+v", l, r.page)
			}
		})
	}
}

// An agent with one account gets advice that works: a valid table, or none if it can have no other account.
func TestOneAccount(t *testing.T) {
	withMenus(t, func(t *testing.T, r *rig) {
		tables := map[cli.Agent]string{
			"claude": "agents.claude.accounts.work", "qwen": "agents.acp.qwen.accounts.work", "goose": "",
		}
		r.offers.AccountTable = func(agent cli.Agent) string { return tables[agent] }
		for agent, parts := range map[cli.Agent][]string{
			"claude": {"\n[agents.claude.accounts.work]\nhome = \"~/.claude-work\"", "restart"},
			"qwen":   {"\n[agents.acp.qwen.accounts.work]\nhome = \"~/.qwen-work\"", "/reload"},
			"goose":  {"only one account"},
		} {
			r.service.choice = orchestrator.AccountChoice{Agent: agent, All: []cli.MenuEntry{{Agent: agent}}}
			r.command("/account")
			for _, part := range parts {
				if !strings.Contains(r.page.Text, part) {
					t.Errorf("%s: %q lacks %q", agent, r.page.Text, part)
				}
			}
			if strings.Contains(r.page.Text, "home =") != (tables[agent] != "") {
				t.Errorf("%s: %q", agent, r.page.Text)
			}
		}
	})
}
