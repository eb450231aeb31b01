package claude

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

func TestOwnHomeEnvironment(t *testing.T) {
	clitest.OwnHomeEnvironment(t, []string{"CLAUDE_CONFIG_DIR"}, func(owner, allowed []string, req cli.Request) []string {
		return New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return owner }, AllowEnv: allowed, OwnerHome: "/home/me"}}).environment(req)
	}, loginDirVar+"=/home/me/.c")
}

func TestHomeSeeds(t *testing.T) {
	owner := t.TempDir()
	clitest.Owned(t, owner, map[string]string{
		".claude/.credentials.json": "log-in",
		".claude/settings.json": `{"hooks": {"Stop": []}, "enabledPlugins": {"x": true}, "model": "opus", "apiKeyHelper": "/bin/key",
			"permissions": {"allow": ["Bash"]}, "env": {"ANTHROPIC_BASE_URL": "http://gateway", "PATH": "/evil"}}`,
		".claude.json": `{"mcpServers": {"canary": {}}, "projects": {}, "oauthAccount": {"emailAddress": "me"}}`,
		".mcp.json":    `{"mcpServers": {"above": {}, "beyond": {}}}`,
	})
	got := clitest.Seeded(t, HomeSeeds(owner, nil))
	base := strconv.Quote(filepath.Join(owner, "CLAUDE.md"))
	for file, want := range map[string][]string{
		".claude/.credentials.json": {"log-in"},
		".claude.json":              {`{"hasCompletedOnboarding":true,"oauthAccount":{"emailAddress":"me"}}`},
		".claude/settings.json":     {base, `"model": "opus"`, `"/bin/key"`, `"ANTHROPIC_BASE_URL": "http://gateway"`, `"above",`, `"beyond"`},
	} {
		for _, part := range want {
			if !strings.Contains(got[file], part) {
				t.Errorf("%s has no %s: %s", file, part, got[file])
			}
		}
	}
	for _, word := range []string{"hooks", "Plugins", "permissions", "PATH", "canary"} {
		if strings.Contains(got[".claude/settings.json"]+got[".claude.json"], word) {
			t.Errorf("%s got into %q", word, got)
		}
	}
}

// Claude searches for skills above the working directory, up to the top of a repository.
func TestOwnersSkillsAreReached(t *testing.T) {
	owner := t.TempDir()
	clitest.Owned(t, owner, map[string]string{
		"plain/a/x": "", "repository/.git/HEAD": "", "repository/a/x": "", "worktree/.git": "gitdir: elsewhere",
	})
	below := func(name string) string { return filepath.Join(owner, name) }
	if reaches(below("plain/a"), owner) {
		t.Error("nothing is there to reach")
	}
	clitest.Owned(t, owner, map[string]string{".claude/skills/tell/SKILL.md": ""})
	for dir, want := range map[string]bool{
		owner: true, below("plain"): true, below("plain/a"): true, below("repository"): false, below("repository/a"): false,
		below("worktree"): false, t.TempDir(): false, filepath.Dir(owner): false,
	} {
		if reaches(dir, owner) != want {
			t.Errorf("from %s the owner's skills are reached: %v", dir, !want)
		}
	}
	p := New(Options{ProviderOptions: cli.ProviderOptions{OwnerHome: owner}})
	for req, want := range map[*cli.Request]bool{
		{Dir: below("plain")}: false, {Dir: below("plain"), Home: "/h"}: true, {Dir: below("repository"), Home: "/h"}: false,
	} {
		if args, err := p.arguments(formatLive, *req, promptFiles{}); err != nil || slices.Contains(args, "--setting-sources=user") != want {
			t.Errorf("%s in %q: %q, %v", req.Dir, req.Home, args, err)
		}
	}
}
