package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestEachSettingSaysWhenAChangeApplies(t *testing.T) {
	all := everySetting()
	if len(all) < 150 {
		t.Fatalf("there are only %d settings", len(all))
	}
	for key, s := range all {
		if isValue(s) && s.applies != AtOnce && s.applies != AfterRestart {
			t.Errorf("a change of %s applies %q", key, s.applies)
		}
	}
}

const beforeReload = `[telegram]
token = "` + token + `"
allowed_users = [1, 2]
proxy = "http://user:first-password@proxy.example:3128"
[queue]
max = 5
[roles.kind]
prompt = "be kind"
[agents.claude]
args = ["--key=first-password"]
[agents.codex]
enabled = true
[agents.acp.goose]
path = "goose"
args = ["--key=first-password"]
`

// What counts at once is taken, and nothing else.
func TestAReloadTakesWhatCountsAtOnce(t *testing.T) {
	before := load(t, beforeReload, nil)
	read := load(t, strings.NewReplacer(
		"[1, 2]", "[1]", "max = 5", "max = 6", "be kind", "be brief", "first-password", "second-password", "enabled = true", "enabled = false",
		"[roles.kind]", "[roles.new]\nprompt = \"x\"\n[roles.kind]",
	).Replace(beforeReload), nil)
	next, changes, err := before.Reloaded(read)
	if err != nil {
		t.Fatal(err)
	}
	want := []Changed{
		{"agents.acp.goose.args", AtOnce, "", ""}, {"agents.claude.args", AfterRestart, "", ""}, {"agents.codex.enabled", AfterRestart, "true", "false"}, {"queue.max", AtOnce, "5", "6"},
		{"roles.kind.prompt", AtOnce, `"be kind"`, `"be brief"`}, {"roles.new", AtOnce, "", "{...}"}, {"telegram.allowed_users", AtOnce, "[1 2]", "[1]"},
		{"telegram.proxy", AfterRestart, "", ""},
	}
	if !reflect.DeepEqual(changes, want) {
		t.Errorf("the changes are\n%q\nwant\n%q", changes, want)
	}
	if next.Queue.Max != 6 || len(next.Telegram.AllowedUsers) != 1 || next.Roles["kind"].Prompt != "be brief" {
		t.Errorf("what counts at once does not: %+v", next)
	}
	if !next.Agents.Codex.Enabled || next.Telegram.Proxy != before.Telegram.Proxy || next.Agents.Claude.Args[0] != before.Agents.Claude.Args[0] {
		t.Error("what counts after a restart counts already")
	}
	if before.Queue.Max != 5 || len(before.Telegram.AllowedUsers) != 2 {
		t.Error("what was before is changed")
	}
	if _, again, err := next.Reloaded(read); err != nil || len(again) != 3 {
		t.Errorf("a second reload lists %q, %v", again, err)
	}
	if _, none, err := before.Reloaded(before); err != nil || len(none) != 0 {
		t.Errorf("nothing changed, and it lists %q, %v", none, err)
	}
}

// A key that counts at once and needs one that does not changes nothing, and is named.
func TestAReloadTakesNothingThatNeedsARestart(t *testing.T) {
	before := load(t, beforeReload, nil)
	read := load(t, strings.Replace(beforeReload, "[queue]\nmax = 5", "[mcp.servers.bird]\ncommand = \"bird\"\n[roles.bird]\nprompt = \"x\"\nmcp = [\"bird\"]\n[queue]\nmax = 7", 1), nil)
	next, _, err := before.Reloaded(read)
	var invalid *Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Key != "roles.bird.mcp" || !strings.Contains(err.Error(), "after a restart only") {
		t.Errorf("the error is %v", err)
	}
	if next.Queue.Max != 5 {
		t.Error("a part of it counts")
	}
}
