package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ductor/docker/dockertest"
	"ductor/internal/realagent"
)

// goVar is what the Go tool says about a variable.
func goVar(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return name + "=" + strings.TrimSpace(string(out))
}

// A ductor that was built by "go build ./cmd/ductor", and nothing else, runs an agent in a sandbox.
func TestOneBuildIsEnoughForSandboxes(t *testing.T) {
	realagent.LongOnly(t) // it builds ductor without -trimpath
	dockertest.Need(t)
	program := filepath.Join(t.TempDir(), "ductor")
	if out, err := exec.Command("go", "build", "-trimpath=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := append(os.Environ(), goVar(t, "GOCACHE"), goVar(t, "GOMODCACHE")) // the town has a home of its own
	onlyCanaries(t)
	town := boxedTown(t, nil)
	town.cfg.Sandbox.Runner = ""
	town.extra = sandboxed(town.cfg)
	cmd := exec.Command(program, "run", "-c", town.writeConfig())
	cmd.Env = append(env, "HOME="+os.Getenv("HOME"), "PATH="+os.Getenv("PATH"))
	watchDaemon(t, cmd, (*exec.Cmd).Start)
	town.cell(dockertest.Host()).works()
	made, err := os.Readlink(filepath.Join(town.cfg.Storage.Dir, "program", "ductor-runner"))
	if err != nil || !strings.HasPrefix(made, "ductor-runner-") {
		t.Errorf("the runner is %q: %v", made, err)
	}
}
