package app

import (
	"context"
	"testing"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

type menuGateway struct {
	orchestrator.Gateway
	entries []cli.MenuEntry
}

func (m menuGateway) Menu(context.Context, cli.Sandbox, cli.Accounts, ...cli.Agent) []cli.MenuEntry {
	return m.entries
}

// TestConfiguredModels tests that the menu gets facts about a model from the configuration only if its agent has
// none, and that the agent's own list does not change.
func TestConfiguredModels(t *testing.T) {
	listed := []cli.MenuEntry{
		{Agent: "claude", Models: []cli.Model{{ID: "opus"}, {ID: "haiku", Context: 7}}},
		{Agent: "codex", Models: []cli.Model{{ID: "gpt"}, {ID: "mini", Default: true}}},
	}
	k := configuredModels{menuGateway{entries: listed}, func() map[string]naming.Alias {
		return map[string]naming.Alias{
			"big": {Use: "claude/Opus high", Context: 200_000, Price: cli.Price{Input: 5, Output: 25}}, "small": {Use: "claude haiku", Context: 9, Price: cli.Price{Input: 1}},
			"other": {Use: "codex", Price: cli.Price{Output: 2}},
		}
	}}
	got := k.Menu(t.Context(), "", nil)
	if m := got[0].Models[0]; m.Context != 200_000 || m.Price != (cli.Price{Input: 5, Output: 25}) {
		t.Errorf("%+v", m)
	}
	if m := got[0].Models[1]; m.Context != 7 || m.Price.Input != 1 {
		t.Errorf("what the agent says does not count: %+v", m)
	}
	if got[1].Models[0].Price != (cli.Price{}) || got[1].Models[1].Price.Output != 2 ||
		listed[0].Models[0].Context != 0 {
		t.Errorf("%+v of %+v", got, listed)
	}
}
