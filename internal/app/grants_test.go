package app

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/lang"
	"ductor/orchestrator"
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

// threeUsers writes a configuration that allows the owners 1 and 3, the user 2 and further users.
func (r *reloadRig) threeUsers(more string) {
	r.t.Helper()
	text := strings.Replace(base, "[1, 2]", "[1, 2, 3"+more+"]", 1) + "[users.3]\nrole = \"owner\"\n"
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// appendText appends a text to the file.
func (r *reloadRig) appendText(text string) {
	r.t.Helper()
	before, err := os.ReadFile(r.path)
	if err == nil {
		err = os.WriteFile(r.path, append(before, text...), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// restart simulates the next start, which uses the file.
func (r *reloadRig) restart() {
	r.t.Helper()
	cfg, err := r.load()
	if err != nil {
		r.t.Fatal(err)
	}
	r.setStart(cfg)
	r.NotifyOfChanges(r.t.Context())
}

// reload sends /reload as the owner 1 after the user 66 was allowed.
func (r *reloadRig) reload(chat int64) (answer string) {
	r.t.Helper()
	r.threeUsers(", 66")
	return r.reloadFor(r.t.Context(), orchestrator.Press{
		Person: 1, Conversation: orchestrator.ConversationID{Chat: chat},
	})
}

// addOpenCode taps "Add OpenCode" as the owner 1.
func (r *reloadRig) addOpenCode() {
	r.t.Helper()
	press := orchestrator.Press{Person: 1, Conversation: orchestrator.ConversationID{Chat: 1}}
	if err := r.addAgent(r.t.Context(), press, "opencode"); err != nil {
		r.t.Fatal(err)
	}
}

// invite lets the user 4 accept an invitation as an owner.
func (r *reloadRig) invite() {
	r.t.Helper()
	by := orchestrator.Press{Person: 1, Role: orchestrator.RoleOwner}
	code, err := r.users.Invite(r.t.Context(), by, orchestrator.RoleOwner)
	if err != nil || !r.users.Join(r.t.Context(), 4, "Dan", code) {
		r.t.Fatalf("user 4 cannot join: %v", err)
	}
}

// newMessages returns the messages since the last call by their chats.
func (r *reloadRig) newMessages(seen map[string]bool) map[int64]string {
	r.t.Helper()
	owed, err := r.db.OwedMessages(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	got := map[int64]string{}
	for _, m := range owed {
		if !seen[m.Key] {
			seen[m.Key] = true
			got[m.Conversation.Chat] += string(m.Content)
		}
	}
	return got
}

// addedUser is the line about the user 66.
const addedUser = "allowed users: added 66, removed none"

// grantCase changes grants in one way.
type grantCase struct {
	change func(*reloadRig)
	want   map[int64][]string // parts of the message to each user
	later  []int64            // users who get an alarm at the next start
}

// alarmCases are changes that no user made in a chat.
func alarmCases() map[string]grantCase {
	const alarm = "ductor's configuration changed:"
	since := []string{"changed since its last start:", addedUser}
	return map[string]grantCase{
		"a reload by SIGHUP": {change: func(r *reloadRig) {
			r.threeUsers(", 66")
			if _, err := r.Reload(r.t.Context()); err != nil {
				r.t.Fatal(err)
			}
		}, want: map[int64][]string{1: {alarm, addedUser}, 3: {alarm, addedUser}}},
		"a start": {change: func(r *reloadRig) {
			r.threeUsers(", 66")
			r.restart()
		}, want: map[int64][]string{1: since, 3: since}},
		"an owner who was invited": {change: func(r *reloadRig) {
			r.invite()
			r.threeUsers(", 66")
			r.restart()
		}, want: map[int64][]string{1: since, 3: since, 4: since}},
		"an added agent in a changed file": {change: func(r *reloadRig) {
			r.threeUsers(", 66")
			r.addOpenCode()
		}, want: map[int64][]string{1: {alarm, addedUser, "opencode"}, 3: {alarm, addedUser}}},
		"an added agent whose arguments are in the file": {change: func(r *reloadRig) {
			r.appendText("[agents.acp.opencode]\nargs = [\"run\", \"evil\"]\n")
			r.addOpenCode()
		}, want: map[int64][]string{1: {alarm, "opencode"}, 3: {alarm, "opencode"}}},
	}
}

// chatCases are changes that the owner 1 made in a chat.
func chatCases() map[string]grantCase {
	const told = "1 reloaded the configuration"
	return map[string]grantCase{
		"/reload": {change: func(r *reloadRig) {
			if said := r.reload(1); !strings.Contains(said, addedUser) {
				r.t.Errorf("it answers %q", said)
			}
		}, want: map[int64][]string{3: {told, addedUser, "telegram.allowed_users"}}},
		"/reload with an owner who was invited": {change: func(r *reloadRig) {
			r.invite()
			r.reload(1)
		}, want: map[int64][]string{3: {told}, 4: {told}}},
		"/reload in a group": {change: func(r *reloadRig) {
			if said := r.reload(-5); strings.Contains(said, "66") {
				r.t.Errorf("it answers %q", said)
			}
		}, want: map[int64][]string{1: {told, addedUser}, 3: {told, addedUser}}},
		"/reload without changes": {change: func(r *reloadRig) {
			r.reloadFor(r.t.Context(), orchestrator.Press{Person: 1})
		}},
		"/reload while an alarm is owed": {change: func(r *reloadRig) {
			old := grantsOf(r.now().Config)
			old.Users = []int64{1, 2}
			r.recordGrants(GrantsPath(r.path), old)
			r.reload(1)
		}, want: map[int64][]string{3: {told}}, later: []int64{1}},
		"an added agent": {change: (*reloadRig).addOpenCode, want: map[int64][]string{
			3: {"1 added the agent OpenCode."},
		}},
	}
}

// TestWhoHearsOfChangedGrants tests who gets a message if different users can control the bot. Changes that no user
// made in a chat alarm all owners. Changes that an owner made in a chat are shown to the other owners.
func TestWhoHearsOfChangedGrants(t *testing.T) {
	cases := alarmCases()
	maps.Copy(cases, chatCases())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, seen := newReloadRig(t), map[string]bool{}
			r.threeUsers("")
			r.restart()
			if got := r.newMessages(seen); len(got) > 0 {
				t.Fatalf("the first start notifies %v", got)
			}
			c.change(r)
			got := r.newMessages(seen)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(c.want))) {
				t.Errorf("the messages are %v", got)
			}
			for user, parts := range c.want {
				for _, part := range parts {
					if !strings.Contains(got[user], part) {
						t.Errorf("no %q in the message to %d: %s", part, user, got[user])
					}
				}
			}
			r.restart()
			if later := r.newMessages(seen); !slices.Equal(slices.Sorted(maps.Keys(later)), c.later) {
				t.Errorf("the next start notifies %v", later)
			}
		})
	}
}
