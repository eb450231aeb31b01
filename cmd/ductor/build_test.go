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

// goVar returns a variable of the Go tool.
func goVar(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return name + "=" + strings.TrimSpace(string(out))
}

// A ductor built with "go build ./cmd/ductor" alone runs an agent in a sandbox.
func TestOneBuildIsEnoughForSandboxes(t *testing.T) {
	realagent.LongOnly(t) // it builds ductor without -trimpath
	dockertest.Need(t)
	program := filepath.Join(t.TempDir(), "ductor")
	if out, err := exec.Command("go", "build", "-trimpath=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := append(os.Environ(), goVar(t, "GOCACHE"), goVar(t, "GOMODCACHE")) // since the town has another home
	onlyCanaries(t)
	town := boxedTown(t, nil)
	town.cfg.Sandbox.Runner = ""
	town.extra = sandboxed(town.cfg)
	cmd := exec.Command(program, "run", "-c", town.writeConfig())
	cmd.Env = append(env, "HOME="+os.Getenv("HOME"), "PATH="+os.Getenv("PATH"))
	watchDaemon(t, cmd, (*exec.Cmd).Start)
	town.cell(dockertest.Host()).runTurn()
	made, err := os.Readlink(filepath.Join(town.cfg.Storage.Dir, "program", "ductor-runner"))
	if err != nil || !strings.HasPrefix(made, "ductor-runner-") {
		t.Errorf("the runner is %q: %v", made, err)
	}
}

// Without a C compiler, the build fails with one sentence about that: packages that need one depend on a package that
// fails.
func TestABuildWithoutACCompilerSaysWhatIsMissing(t *testing.T) {
	const compiler = "ductor/internal/store/sqlite/compiler"
	build := exec.Command("go", "build", compiler)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", goVar(t, "GOCACHE"))
	out, err := build.CombinedOutput()
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil || len(lines) != 2 ||
		!strings.Contains(lines[1], "needs_a_C_compiler") {
		t.Errorf("%v:\n%s", err, out)
	}
	imports, err := exec.Command("go", "list", "-f", "{{.Imports}}", "ductor/internal/store/sqlite").Output()
	if err != nil || !strings.Contains(string(imports), compiler) {
		t.Errorf("package sqlite is compiled without package compiler: %s, %v", imports, err)
	}
}
