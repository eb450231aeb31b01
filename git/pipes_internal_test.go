package git

import (
	"os/exec"
	"testing"

	"ductor/cli/clitest"
)

// Git does not wait for devices such as /dev/null, which users name to exclude nothing, nor for files that it does not
// read.
func TestFilesForWhichGitDoesNotWait(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for plant, waits := range map[string]bool{
		"git config core.excludesFile /dev/null; git config core.attributesFile /dev/null": false,
		"mkfifo .gitpipe .git-x x .gitignore.bak":                                          false,
		"mkdir .gitignore":      false,
		"mkfifo .gitattributes": true,
	} {
		dir := t.TempDir()
		cmd := exec.Command("sh", "-ec", "git init -q; "+plant)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", plant, err, out)
		}
		if path := blockingFile(t.Context(), clitest.Host(t), dir); (path != "") != waits {
			t.Errorf("%s: git would wait for %q", plant, path)
		}
	}
}
