// Package realagent provides the real agent CLIs that `npm ci` installed in test/agents. Each gets its own environment:
// a new home directory, a dummy key, no updates, no telemetry, and the address of a simulated model API. The package is
// for tests only.
package realagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"ductor/internal/sim/modelapi"
)

const Key = "sk-ant-simulated-key"

// Model starts a simulated model API, which stops at the end of the test. It accepts only the given API key, or any key
// if the given one is empty.
func Model(t testing.TB, key string) *modelapi.Server {
	t.Helper()
	api := modelapi.New(modelapi.Options{Key: key})
	if err := api.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := api.Close(ctx); err != nil {
			t.Errorf("close the model's API: %v", err)
		}
	})
	return api
}

// CLI is an installed agent with its environment.
type CLI struct {
	Path string            // the native program
	Npm  string            // the program that npm puts on PATH; for Codex, a Node program that starts Path
	Home string            // the agent's home directory, removed after the test
	Work string            // an empty working directory, removed after the test
	Vars map[string]string // the complete environment

	ACPArgs []string // arguments that start the program as an ACP agent; nil if it is not an ACP agent
}

// Environ returns Vars in the form of exec.Cmd.Env, sorted.
func (c CLI) Environ() []string {
	env := make([]string, 0, len(c.Vars))
	for _, k := range slices.Sorted(maps.Keys(c.Vars)) {
		env = append(env, k+"="+c.Vars[k])
	}
	return env
}

// Setenv sets the variables c.Vars in the environment of the test process. Use it if the tested code starts agents with
// this environment.
func (c CLI) Setenv(t testing.TB) {
	t.Helper()
	for k, v := range c.Vars {
		t.Setenv(k, v)
	}
}

// Claude returns the installed Claude Code, configured to use the model API at baseURL. If it is not installed, the
// test is skipped, or fails if CI=true.
func Claude(t testing.TB, baseURL string) CLI {
	t.Helper()
	c := newCLI(t, "Claude Code",
		filepath.Join("@anthropic-ai", "claude-code-"+platform(), "claude"), filepath.Join(".bin", "claude"))
	c.set(map[string]string{
		"ANTHROPIC_BASE_URL":                       baseURL,
		"ANTHROPIC_API_KEY":                        Key,
		"DISABLE_AUTOUPDATER":                      "1",
		"DISABLE_TELEMETRY":                        "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"IS_SANDBOX":                               "1",
	})
	return c
}

// WritePlan writes a plan to the file that Claude Code named in the latest prompt to its model.
func WritePlan(t testing.TB, api *modelapi.Server, plan string) {
	t.Helper()
	prompts := api.Prompts()
	for i := len(prompts) - 1; i >= 0; i-- {
		if path := planFile.FindString(string(prompts[i].Body)); path != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(plan), 0o600)); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("Claude named no file for a plan")
}

var planFile = regexp.MustCompile(`/[\w./-]*/\.claude/plans/[\w-]+\.md`)

// Codex returns the installed Codex, configured to use the model API at baseURL. If it is not installed, the test is
// skipped, or fails if CI=true.
func Codex(t testing.TB, baseURL string) CLI {
	t.Helper()
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	triple := arch + "-unknown-linux-musl"
	if runtime.GOOS == "darwin" {
		triple = arch + "-apple-darwin"
	}
	c := newCLI(t, "Codex",
		filepath.Join("@openai", "codex-"+platform(), "vendor", triple, "bin", "codex"), filepath.Join(".bin", "codex"))
	home := filepath.Join(c.Home, ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatalf("make Codex's home: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(codexConfig(baseURL)), 0o600); err != nil {
		t.Fatalf("write Codex's config: %v", err)
	}
	c.set(map[string]string{"CODEX_HOME": home, "CODEX_API_KEY": Key, "OPENAI_API_KEY": Key, codexKeyVar: Key})
	return c
}

const codexKeyVar = "CODEX_SIM_KEY"

func codexConfig(baseURL string) string {
	return fmt.Sprintf(`model = "gpt-5.5"
model_provider = "sim"
check_for_update_on_startup = false

[model_providers.sim]
name = "sim"
base_url = "%s/v1"
env_key = "%s"
wire_api = "responses"

[analytics]
enabled = false
`, baseURL, codexKeyVar)
}

func (c CLI) set(vars map[string]string) { maps.Copy(c.Vars, vars) }

// platform returns the name of this platform as used in npm packages.
func platform() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return runtime.GOOS + "-" + arch
}

func newCLI(t testing.TB, name, binary, npm string) CLI {
	t.Helper()
	modules, err := modulesDir()
	if err != nil {
		missing(t, name, err)
	}
	c := CLI{Path: filepath.Join(modules, binary), Npm: filepath.Join(modules, npm)}
	for _, p := range []string{c.Path, c.Npm} {
		if _, err := os.Stat(p); err != nil {
			missing(t, name, err)
		}
	}
	base := tempDir(t)
	c.Home, c.Work = filepath.Join(base, "home"), filepath.Join(base, "work")
	tmp := filepath.Join(base, "tmp")
	for _, d := range []string{c.Home, c.Work, tmp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatalf("make a place for %s: %v", name, err)
		}
	}
	c.Vars = map[string]string{
		"HOME": c.Home, "PATH": os.Getenv("PATH"), "TMPDIR": tmp, "TERM": "dumb", "LANG": "C.UTF-8",
		"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
	}
	return c
}

// Npm returns the path of a program that `npm ci` installed in test/agents.
func Npm(t testing.TB, name string) string {
	t.Helper()
	modules, err := modulesDir()
	path := filepath.Join(modules, ".bin", name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		missing(t, name, err)
	}
	return path
}

// missing skips the test because a program is not installed. If CI=true, it fails the test instead.
func missing(t testing.TB, name string, err error) {
	t.Helper()
	message := fmt.Sprintf("%s is not installed (npm ci in test/agents installs it): %v", name, err)
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// modulesDir returns the node_modules directory in $DUCTOR_TEST_AGENTS, or in test/agents of this module.
func modulesDir() (string, error) {
	if d := os.Getenv("DUCTOR_TEST_AGENTS"); d != "" {
		return filepath.Join(d, "node_modules"), nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "test", "agents", "node_modules"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("find the module: no go.mod above the working directory")
		}
		dir = up
	}
}

// tempDir is like t.TempDir, but the test does not fail if an agent is still writing into the directory at the end.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ductor-agent-")
	if err != nil {
		t.Fatalf("make a temporary directory: %v", err)
	}
	t.Cleanup(func() {
		for range 20 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return dir
}
