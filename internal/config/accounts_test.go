package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The home of an account is a directory of its own, outside of all projects, which only its user can write.
func TestAccounts(t *testing.T) {
	home := t.TempDir()
	mkdir := func(name string, mode os.FileMode) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("open", 0o755)
	mkdir("shared", 0o770)
	mkdir("project/inside", 0o700)
	mkdir(".claude", 0o700)
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"to-default": ".claude", "to-project": "project/inside"} {
		if err := os.Symlink(filepath.Join(home, target), filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	const claude = "agents.claude.accounts."
	line := regexp.MustCompile(`^config\.toml:[34]:\d+: agents\.`)
	for _, tc := range []struct{ text, want, doubt string }{
		{claude + `work.home = "~/missing"`, "", ""},
		{claude + `work.home = "~/open"`, "", "others may read"},
		{`agents.gemini.accounts.work.home = "~/other"`, "", ""},
		{claude + `Work.home = "~/x"`, "an account's name is", ""},
		{claude + `"a b".home = "~/x"`, "an account's name is", ""},
		{claude + `default.home = "~/x"`, "an account's name is", ""},
		{claude + strings.Repeat("a", 21) + `.home = "~/x"`, "an account's name is", ""},
		{"[agents.claude.accounts.work]", "needs a home", ""},
		{claude + `work.home = "x"`, "must be absolute", ""},
		{claude + `work.home = "~/file"`, "is not a directory", ""},
		{claude + `work.home = "~/shared"`, "others may write", ""},
		{claude + `work.home = "~/project/inside"`, "outside of all projects", ""},
		{claude + `work.home = "~/project/missing"`, "outside of all projects", ""},
		{claude + `work.home = "~/to-project"`, "outside of all projects", ""},
		{claude + `work.home = "~/.claude"`, "the default account has this home", ""},
		{claude + `work.home = "~/to-default/"`, "the default account has this home", ""},
		{claude + `a.home = "~/x"` + "\n" + claude + `b.home = "~/./x"`, "the account a has this home", ""},
		{`agents.gemini.accounts.work.home = "~"`, "the default account has this home", ""},
		{`agents.acp.goose.accounts.work.home = "~/x"`, "only one account", ""},
		{`agents.acp.qwen.accounts.work.home = "~/x"`, "", ""},
		{`agents.acp.qwen.accounts.work.home = "~/.qwen"`, "the default account has this home", ""},
	} {
		project := filepath.Join(home, "project")
		text := fmt.Sprintf("telegram.token = %q\nprojects.roots = [%q]\n%s", token, project, tc.text)
		c, err := build("config.toml", []byte(text), 0o600, environment(map[string]string{"HOME": home}))
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.text, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !line.MatchString(err.Error())):
			t.Errorf("%s: %v, want %q with its line", tc.text, err, tc.want)
		}
		if doubts := strings.Join(c.Warnings, "\n"); !strings.Contains(doubts, tc.doubt) {
			t.Errorf("%s: the doubts are %q", tc.text, doubts)
		}
	}
}

// The homes of an agent's accounts lie beside each other, and contain no project.
func TestHomesOfAccountsLieApart(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, ".claude"), filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ agents, a, b, want string }{
		{"claude claude", "~/x", "~/xy", ""},
		{"claude codex", "~/x", "~/x/y", ""},
		{"claude claude", "~/x", "~/x/y", "lies in the home of the account a or contains it"},
		{"claude claude", "~/x/y", "~/x", "lies in the home of the account a or contains it"},
		{"claude claude", "~/x", "~", "the default account"},
		{"claude claude", "~/x", "~/.claude/work", "the default account"},
		{"claude claude", "~/x", "~/link/work", "the default account"},
		{"gemini gemini", "~/x", "~/y", ""},
		{"gemini gemini", "~/x", "~/x/y", "the account a"},
		{"gemini gemini", "~/x", "/", "contains it"},
		{"claude codex", "~/x", "~/above", "a project lies in it"},
		{"claude codex", "~/x", "~/above/project/y", "outside of all projects"},
	} {
		first, second, _ := strings.Cut(tc.agents, " ")
		text := fmt.Sprintf("telegram.token = %q\nprojects.roots = [%q]\nagents.%s.accounts.a.home = %q\n"+
			"agents.%s.accounts.b.home = %q", token, filepath.Join(home, "above", "project"), first, tc.a, second, tc.b)
		_, err := build("config.toml", []byte(text), 0o600, environment(map[string]string{"HOME": home}))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s, %s and %s: %v, want %q", tc.agents, tc.a, tc.b, err, tc.want)
		}
	}
}

// AccountTable names only tables that the configuration accepts.
func TestAccountTable(t *testing.T) {
	text := fmt.Sprintf("telegram.token = %q\n[agents.acp.qwen]\n[agents.acp.goose]\n[agents.acp.kilo]\n", token)
	c, err := build("config.toml", []byte(text), 0o600, environment(map[string]string{"HOME": t.TempDir()}))
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{
		"claude": "agents.claude.accounts.work", "gemini": "agents.gemini.accounts.work",
		"qwen": "agents.acp.qwen.accounts.work", "goose": "", "kilo": "", "unknown": "",
	} {
		if got := c.Agents.AccountTable(agent); got != want {
			t.Errorf("%s: %q, want %q", agent, got, want)
		}
	}
}
