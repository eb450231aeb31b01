package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A chat selects a repository and a branch with /project. The agent works in a worktree, and may use the additional
// configured directories. The worktree and its changes are only removed after a question.
func TestAChatWorksOnABranchOfAProject(t *testing.T) {
	shared := t.TempDir()
	town := newTown(t, func(cfg *config.Config) {
		cfg.Projects.AddDirs, cfg.Permissions.Mode = []string{shared}, "bypass"
	})
	root := town.cfg.Projects.Roots[0]
	sh := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	sh(
		`git init -q -b main shop; cd shop; git config user.name A; git config user.email a@b; echo one > a; git add .; git commit -qm one
		printf '#!/bin/sh\ntouch ` + shared + `/hooked\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
		echo 'a filter=later' > .gitattributes; git add .; git commit -qm attributes; git config includeIf.gitdir:**/worktrees/**.path later
		git config --file .git/later filter.later.smudge 'touch ` + shared + `/hooked; cat'`)
	town.say("/project")
	town.await("Tap a project to switch to it")
	town.press("shop")
	town.say("/cwd")
	town.await("The agent works in " + filepath.Join(root, "shop") + "\n")
	town.say("/project shop@fix/crash")
	m := town.await("From now on the agent works in " + filepath.Join(root, "shop", ".worktrees", "fix-crash-"))
	_, dir, _ := strings.Cut(m.Text, "works in ")
	dir, _, _ = strings.Cut(dir, ". Your next message")
	town.say(`go [[write path="made.txt" text="by the agent"]] [[text "done"]]`)
	town.awaitDone(1)
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "by the agent" {
		t.Errorf("the agent wrote %q, %v", text, err)
	}
	town.say("/get made.txt")
	town.awaitFile("document", "made.txt")
	if argv := town.argv("claude"); !strings.Contains(argv, shared) {
		t.Errorf("the agent does not get the further directory: %s", argv)
	}
	town.say("/project")
	town.await("The agent works in " + dir)
	town.press("🌿 Worktrees")
	town.await("(nothing left to merge)")
	town.press("🗑")
	town.await("This chat works in " + dir)
	town.press("🗑 Remove the folder")
	town.await("has uncommitted changes")
	town.press("🗑 Remove with the changes")
	town.await("Branches of this repository")
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

// If a repository belongs to another user of the machine, the chat says so and how to trust it.
func TestARepositoryOfAnotherUser(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir() // stands for a directory of another user
	script := "#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec " + git + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(other, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", other+":"+os.Getenv("PATH"))
	town := newTown(t, nil)
	dir := filepath.Join(town.cfg.Projects.Roots[0], "it's")
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	town.say("/project")
	town.press("it's")
	for _, command := range []string{"/project it's@fix", "/diff", "/checkpoint"} {
		said := town.say("%s", command)
		m := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "belongs to another user")
		})
		if !strings.Contains(m.Text, "git config --global --add safe.directory '"+strings.ReplaceAll(dir, "'", `'\''`)+
			"'") || strings.Contains(m.Text, "fatal") {
			t.Errorf("%s answers %q", command, m.Text)
		}
	}
}
