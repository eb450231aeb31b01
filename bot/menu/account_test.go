package menu

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
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
