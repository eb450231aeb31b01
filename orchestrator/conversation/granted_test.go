package conversation_test

import (
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// in moves the conversation to a directory, and returns the mode of its next turn there.
func (h *house) in(t *testing.T, root, dir, prompt string) cli.PermissionMode {
	t.Helper()
	if _, err := h.SetDir(t.Context(), here, filepath.Join(root, dir), owner); err != nil {
		t.Fatal(err)
	}
	return h.ask(t, here, prompt).Permission
}

// A mode above ask applies in the environment that it was chosen for, and ends once a turn ran in another one.
func TestAModeEndsWhereItsEnvironmentChanges(t *testing.T) {
	for _, mode := range []cli.PermissionMode{cli.AcceptEdits, cli.Auto, cli.Bypass} {
		t.Run(string(mode), func(t *testing.T) {
			root := t.TempDir()
			h := openIn(t, newPath(t), root, inSandboxes())
			for _, from := range []string{"web", "plain"} {
				to := map[string]string{"web": "plain", "plain": "db"}[from]
				h.in(t, root, from, "before in "+from)
				if err := h.SetPermission(t.Context(), here, mode, owner); err != nil {
					t.Fatal(err)
				}
				if got := h.in(t, root, from, "granted in "+from); got != mode {
					t.Errorf("where it was chosen a turn runs in %s", got)
				}
				if _, err := h.SetDir(t.Context(), here, filepath.Join(root, to), owner); err != nil {
					t.Fatal(err)
				}
				st, err := h.Status(t.Context(), here)
				if err != nil || st.Permission != cli.Ask || !st.BypassUntil.IsZero() {
					t.Errorf("after a change the status says %s, %v", st.Permission, err)
				}
				for _, dir := range []string{to, from} {
					if got := h.in(t, root, dir, "from "+from+" in "+dir); got != cli.Ask {
						t.Errorf("after a change a turn in %s runs in %s", dir, got)
					}
				}
			}
			if err := h.SetPermission(t.Context(), here, cli.Plan, owner); err != nil {
				t.Fatal(err)
			}
			if got := h.in(t, root, "web", "to plan"); got != cli.Plan {
				t.Errorf("plan becomes %s", got)
			}
		})
	}
}

// The configuration changes the environment of a directory while ductor is not running. Neither the mode nor a rule
// applies there any more. A plan that starts there, or edits that are accepted there, apply there.
func TestRightsOutliveNoChangeOfTheConfiguration(t *testing.T) {
	path, root := newPath(t), t.TempDir()
	inside := policy{of: map[string]cli.Sandbox{"plain": "web"}}
	h := openIn(t, path, root, inside)
	lasting := orchestrator.Verdict{Choice: orchestrator.AllowPattern}
	if !h.turnWith(t, here, "one", bash("1", "git status"), lasting) || h.turnWith(t, here, "two", bash("2", "git status"), allow()) {
		t.Fatal("a rule does not count where it was made")
	}
	if err := h.SetPermission(t.Context(), here, cli.AcceptEdits, owner); err != nil {
		t.Fatal(err)
	}
	h.shut()
	h.db.Close()

	h = openIn(t, path, root, policy{})
	if !h.turnWith(t, here, "three", bash("3", "git status"), lasting) {
		t.Error("a rule of the sandbox counts on this machine")
	}
	if got := h.agent.requests()[0].Permission; got != cli.Ask {
		t.Errorf("with the sandbox off a turn runs in %s", got)
	}
	if h.turnWith(t, here, "four", bash("4", "git status"), allow()) {
		t.Error("a rule of this machine does not count there")
	}
	if err := h.Bypass(t.Context(), here, time.Minute, owner); err != nil {
		t.Fatal(err)
	}
	if got := h.ask(t, here, "five").Permission; got != cli.Bypass {
		t.Errorf("a bypass of this machine is %s", got)
	}
}
