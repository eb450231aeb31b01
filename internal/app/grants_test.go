package app

import (
	"slices"
	"testing"

	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/lang"
)

func TestWhatChangedSinceTheLastStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   []string
	}{
		"nothing": {func(*config.Config) {}, nil},
		"a user more": {func(c *config.Config) { c.Telegram.AllowedUsers = []int64{1, 2, 66} },
			[]string{"allowed users: added 66, removed none"}},
		"the owner gone": {func(c *config.Config) { c.Telegram.AllowedUsers = []int64{2} },
			[]string{"allowed users: added none, removed 1", "roles of users: 2: user → owner"}},
		"nobody left": {func(c *config.Config) { c.Telegram.AllowedUsers = nil },
			[]string{"allowed users: added none, removed 1 2"}},
		"another owner": {func(c *config.Config) { c.Telegram.AllowedUsers = []int64{2, 1} },
			[]string{"allowed users: the first of them is now 2", "roles of users: 2: user → owner, 1: owner → user"}},
		"a role": {func(c *config.Config) { c.Users = map[string]config.User{"2": {Role: "owner"}} },
			[]string{"roles of users: 2: user → owner"}},
		"a group": {func(c *config.Config) { c.Telegram.AllowedGroups = []int64{-5} }, nil},
		"a group of anyone": {func(c *config.Config) {
			c.Telegram.AllowedGroups = []int64{-5}
			c.Telegram.GroupMembers = "all"
		}, []string{"groups in which I answer every member: added -5"}},
		"token and server": {func(c *config.Config) { c.Telegram.Token, c.Telegram.APIBase = "2:b", "http://x" },
			[]string{"the bot token: this is another bot", "telegram.api_base: messages go to another server"}},
		"programs": {func(c *config.Config) {
			c.Agents.Claude.Path = "/tmp/claude"
			c.Agents.ACP = map[string]acp.Settings{"goose": {Path: "goose"}}
		}, []string{"the programs of agents: claude, goose"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Telegram.Token, cfg.Telegram.AllowedUsers = "1:a", []int64{1, 2}
			before := grantsOf(cfg)
			delete(before.Agents, "copilot") // of a ductor that did not know it
			c.change(&cfg)
			if got := grantsOf(cfg).changes(lang.Printer{}, before); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
