package menu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// serviceFake is a domain that records the changes that menus request.
type serviceFake struct {
	tools   cli.ToolList
	calls   []string
	fail    error // returned by every change
	entries []cli.MenuEntry
	roles   []string
	status  orchestrator.Status
	cannot  map[cli.PermissionMode]lang.Message
	refused []cli.PermissionMode
	choice  orchestrator.AccountChoice
}

func (f *serviceFake) Accounts(context.Context, orchestrator.ConversationID) (orchestrator.AccountChoice, error) {
	return f.choice, nil
}

func (f *serviceFake) SetAccount(_ context.Context, id orchestrator.ConversationID, agent cli.Agent,
	account cli.Account) error {
	return f.change("account %s %s@%s", id.Key(), agent, account)
}

func (f *serviceFake) change(format string, args ...any) error {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.fail
}

func (f *serviceFake) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return f.status, nil
}

func (f *serviceFake) SetModel(_ context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error {
	return f.change("model %s %s/%s %s", id.Key(), agent, model, effort)
}

func (f *serviceFake) Menu(context.Context, orchestrator.ConversationID, ...cli.Agent) ([]cli.MenuEntry, error) {
	return f.entries, nil
}

func (f *serviceFake) MenuNow(context.Context, orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	return f.entries, nil
}

func (f *serviceFake) Permissions(context.Context, orchestrator.ConversationID) (orchestrator.Permissions, error) {
	return orchestrator.Permissions{Mode: f.status.Permission, Cannot: f.cannot, Refused: f.refused, Tools: f.tools, OtherTools: []cli.ToolList{{Denied: []string{"web"}}}, Agent: "codex", Unheld: &cli.Failure{Reason: "it edits"}}, nil
}

func (f *serviceFake) SetPermission(_ context.Context, id orchestrator.ConversationID, mode cli.PermissionMode, _ orchestrator.PersonID) error {
	return f.change("permission %s %s", id.Key(), mode)
}

func (f *serviceFake) Bypass(_ context.Context, id orchestrator.ConversationID, lasts time.Duration, _ orchestrator.PersonID) error {
	return f.change("bypass %s %s", id.Key(), lasts)
}

func (f *serviceFake) SetTools(_ context.Context, id orchestrator.ConversationID, list cli.ToolList, _ orchestrator.PersonID) error {
	f.tools = list
	return f.change("tools %s only %q never %q", id.Key(), list.Only, list.Denied)
}

func (f *serviceFake) Revoke(_ context.Context, id orchestrator.RuleID, _ orchestrator.Press) error {
	return f.change("revoke %s", id)
}

func (f *serviceFake) Roles() []string { return f.roles }

func (f *serviceFake) SetRole(_ context.Context, id orchestrator.ConversationID, name string) error {
	return f.change("role %s %q", id.Key(), name)
}

func (f *serviceFake) Set(_ context.Context, id orchestrator.ConversationID, of orchestrator.Setting, word string) error {
	return f.change("%s %s %s", of, id.Key(), word)
}

const (
	owner = 7
	group = -100
)

// rig has Menus over fakes, and the pages shown in the chat.
type rig struct {
	*Menus
	service *serviceFake
	page    tgapi.Page   // answer to the last command
	edits   []tgapi.Page // messages with buttons
	answers []string     // answers to presses
	expired int          // number of presses that removed buttons
	err     error        // of the last command or press
}

func withMenus(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{service: &serviceFake{status: orchestrator.Status{Agent: "claude", Model: "opus", Permission: cli.Ask}}}
		r.Menus = New(Options{
			Service: r.service, Now: time.Now, Aliases: func() map[string]naming.Alias { return nil },
			Edit: func(_ orchestrator.ConversationID, _ int, page tgapi.Page) { r.edits = append(r.edits, page) },
			Go:   func(f func(context.Context)) { go f(t.Context()) },
		})
		test(t, r)
	})
}

func by(chat int64) orchestrator.Press {
	return orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: chat}, Person: owner, Role: orchestrator.RoleUser}
}

// command sends a command as the owner.
func (r *rig) command(text string) {
	name, args, _ := strings.Cut(text, " ")
	ctx, args := context.Background(), strings.TrimSpace(args)
	switch name {
	case "/model":
		if args == "" {
			r.page, _, r.err = r.Model(ctx, by(owner))
			break
		}
		var later func(context.Context) (tgapi.Page, error)
		if r.page, later, r.err = r.ModelByName(ctx, by(owner), args); later != nil {
			r.page, r.err = later(ctx)
		}
	case "/permissions":
		r.page, r.err = r.Permissions(ctx, by(owner), args)
	case "/account":
		r.page, r.err = r.Account(ctx, by(owner), args)
	case "/role":
		r.page, r.err = r.Role(ctx, by(owner), args)
	case "/queue":
		r.page, r.err = r.Setting(orchestrator.SettingBusy)(ctx, by(owner), args)
	case "/notify":
		r.page, r.err = r.Setting(orchestrator.SettingNotify)(ctx, by(owner), args)
	case "/think":
		r.page, r.err = r.Setting(orchestrator.SettingThink)(ctx, by(owner), args)
	}
}

// press presses a button as the owner.
func (r *rig) press(data string) { r.pressIn(owner, data) }

func (r *rig) pressIn(chat int64, data string) {
	action, what, _ := strings.Cut(data, ":")
	a := Answer{}
	a, r.err = r.Press(context.Background(), by(chat), action, what)
	if a.Edit.Text != "" {
		r.edits = append(r.edits, a.Edit)
	}
	if a.Expired {
		r.expired++
	}
	r.answers = append(r.answers, a.Text)
}

func (r *rig) answer() string { return r.answers[len(r.answers)-1] }

func (r *rig) edit() tgapi.Page { return r.edits[len(r.edits)-1] }

func menuFixture() []cli.MenuEntry {
	ok := cli.Auth{State: cli.Authenticated}
	var many []cli.Model
	for i := range 20 {
		many = append(many, cli.Model{Agent: "codex", ID: cli.ModelID(fmt.Sprintf("gpt-%02d", i)), Efforts: []cli.Effort{"low", "medium", "high"}, Default: i == 12})
	}
	return []cli.MenuEntry{
		{Agent: "claude", Auth: ok, Models: []cli.Model{
			{Agent: "claude", ID: "opus", Name: "Opus 4", Default: true, Efforts: []cli.Effort{"low", "high"}},
			{Agent: "claude", ID: "sonnet", Name: "Sonnet 4"},
			{Agent: "claude", ID: "sonnet[1m]", Name: "Sonnet 4 with 1M"},
		}},
		{Agent: "codex", Auth: ok, Models: many},
		{Agent: "gemini", Auth: cli.Auth{State: cli.NotFound, Fix: "Install it with npm."}},
		{Agent: "copilot", Auth: ok, Err: errors.New("discovery failed\nwith details")},
	}
}

func buttonNames(k tgapi.Keyboard) []string {
	var names []string
	for _, row := range k {
		for _, b := range row {
			names = append(names, b.Text)
		}
	}
	return names
}
