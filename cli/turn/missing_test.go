package turn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
)

// A program that is not in PATH is found in the installers' directories, in its newest version, and the advice names
// it.
func TestAProgramThatIsNotInPathIsNamed(t *testing.T) {
	for _, place := range []string{".local/bin", ".nvm/versions/node/v22.3.0/bin", ".bun/bin", ".npm-global/bin", ".claude/local"} {
		home := t.TempDir()
		path := filepath.Join(home, place, "claude-of-a-test")
		for _, dir := range []string{filepath.Dir(path), filepath.Join(home, ".nvm/versions/node/v20.0.0/bin")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "claude-of-a-test"), []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		o := cli.ProviderOptions{Path: "claude-of-a-test", OwnerHome: home}
		if got := Missing(o, "claude", "install it"); !strings.Contains(got, "to "+path+", where it is") || !strings.Contains(got, "agents.claude.path") || !strings.Contains(got, "PATH") {
			t.Errorf("in %s: %q", place, got)
		}
		if o.OwnerHome = ""; Missing(o, "claude", "install it") != "install it" {
			t.Error("a sandbox is told of programs of this machine")
		}
	}
	if got := Missing(cli.ProviderOptions{Path: "/nowhere/claude", OwnerHome: t.TempDir()}, "claude", "install it"); !strings.Contains(got, "Correct agents.claude.path: /nowhere/claude is no program") {
		t.Errorf("a path that is none: %q", got)
	}
}
