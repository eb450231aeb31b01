package acp

import (
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// The rules that ductor passes to OpenCode count more than those of a project, for each of OpenCode's agents: it asks in
// ask, and it neither writes nor asks in plan.
func TestRealOpenCodeIsHeldInAProjectThatAllowsAll(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	real := realagent.OpenCode(t, api.URL())
	const all = `{"edit":"allow","bash":"allow","*":"allow"}`
	err := os.WriteFile(filepath.Join(real.Work, "opencode.json"), []byte(
		`{"permission":`+all+`,"agent":{"build":{"permission":`+all+`},"plan":{"permission":`+all+`}}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{
		ProviderOptions: cli.ProviderOptions{
			Path: real.Path, Launcher: clitest.Host(t), Env: real.Environ, AllowEnv: []string{"OPENAI_*", "OPENCODE_*"},
		},
		Agent: "opencode", Args: real.ACPArgs,
	})
	for mode, want := range map[cli.PermissionMode]bool{cli.Ask: true, cli.Plan: false} {
		req := cli.Request{Dir: real.Work, Permission: mode, Attended: true, Turn: cli.TurnID(mode),
			Prompt: `[[tool "touch written"]][[text "well"]]`}
		s := open(t, p, req)
		asked := false
		s.Turn(t.Context(), req, func(ev cli.Event) {
			if a, ok := ev.(cli.ApprovalAsked); ok {
				asked = true
				if err := s.Decide(t.Context(), a.ID, cli.Decision{}); err != nil {
					t.Error(err)
				}
			}
		})
		if _, err := os.Stat(filepath.Join(real.Work, "written")); err == nil || asked != want {
			t.Errorf("%s: it asked: %v, it wrote: %v", mode, asked, err == nil)
		}
	}
}
