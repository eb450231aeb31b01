package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
)

// A chat chooses a repository and a branch by /project: the agent works in a worktree, which is removed with its changes only after a
// question; and it may use the configured further directories.
func TestAChatWorksOnABranchOfAProject(t *testing.T) {
	shared := t.TempDir()
	town := newTown(t, func(cfg *config.Config) { cfg.Projects.AddDirs, cfg.Permissions.Mode = []string{shared}, "bypass" })
	root := town.cfg.Projects.Roots[0]
	sh := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	sh(`git init -q -b main shop; cd shop; git config user.name A; git config user.email a@b; echo one > a; git add .; git commit -qm one
		printf '#!/bin/sh\ntouch ` + shared + `/hooked\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout`)
	town.say("/project")
	town.await("Press a project to work there")
	town.press("shop")
	town.say("/cwd")
	town.await("The agent works in " + filepath.Join(root, "shop") + "\n")
	town.say("/project shop@fix/crash")
	m := town.await("From now on the agent works in " + filepath.Join(root, "shop", ".worktrees", "fix-crash-"))
	_, dir, _ := strings.Cut(strings.TrimSuffix(m.Text, "."), "works in ")
	town.say(`go [[write path="made.txt" text="by the agent"]] [[text "done"]]`)
	town.awaitDone(1)
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "by the agent" {
		t.Errorf("the agent wrote %q, %v", text, err)
	}
	if argv := town.argv("claude"); !strings.Contains(argv, shared) {
		t.Errorf("the agent does not get the further directory: %s", argv)
	}
	town.say("/project")
	town.await("The agent works in " + dir)
	town.press("🌿 Worktrees")
	town.await("(merged)")
	town.press("🗑")
	town.await("holds changes that are in no commit")
	town.press("🗑 Remove with the changes")
	town.await("The branches of this repository")
	if _, err := os.Stat(dir); err == nil {
		t.Error("the worktree is still there")
	}
	if _, err := os.Stat(filepath.Join(shared, "hooked")); err == nil {
		t.Error("a hook of the repository ran")
	}
	town.say("/cwd")
	town.await("The agent works in " + filepath.Join(root, "shop") + "\n")
	town.say("/project none@x")
	town.await(`There is no project "none"`)
}
