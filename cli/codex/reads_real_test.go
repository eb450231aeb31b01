package codex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// In Codex's own read-only sandbox a command reads the whole disk and the keys of Codex, and programs of the project run. So a
// consulted Codex has no shell. If a newer Codex fails this test, it may get one.
func TestRealReadOnlySandboxReadsTheDisk(t *testing.T) {
	realagent.LongOnly(t)
	p, work, _ := real(t)
	outside := filepath.Join(t.TempDir(), "private")
	script := filepath.Join(work, "run.sh")
	for path, text := range map[string]string{outside: "my private words", script: "echo the project ran; env"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	req := cli.Request{Dir: work, Permission: cli.Plan}
	req.Prompt = `[[tool cmd="cat ` + outside + `"]] [[tool cmd="./run.sh"]] [[tool cmd="touch made"]] [[text "over"]]`
	_, events := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
	var said string
	for _, e := range clitest.Of[cli.ToolEnded](events) {
		said += e.Output
	}
	for _, read := range []string{"my private words", "the project ran", "CODEX_API_KEY="} {
		if !strings.Contains(said, read) {
			t.Errorf("a command in the sandbox does not print %q", read)
		}
	}
	if _, err := os.Stat(filepath.Join(work, "made")); err == nil {
		t.Error("a command in the sandbox wrote")
	}
}
