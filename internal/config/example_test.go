package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const examplePath = "../../config.toml.example"

func exampleText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withRole is the example with its role switched on: its lines begin with # and no space.
func withRole(text string) string {
	return regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAllString(text, "$1")
}

func TestExampleIsTheDefaults(t *testing.T) {
	_, c, found := decode([]byte(exampleText(t)))
	if err := found.asError("example"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(defaults(), c); d != "" {
		t.Errorf("config.toml.example differs from the defaults (-default +example):\n%s", d)
	}
	_, c, found = decode([]byte(withRole(exampleText(t))))
	if err := found.asError("example"); err != nil {
		t.Fatal(err)
	}
	got := c.Roles["reviewer"]
	got.Prompt = ""
	goose := c.Agents.ACP["goose"]
	goose.Path = ""
	if d := cmp.Diff(defaultACP(), goose); d != "" {
		t.Errorf("the agent of the example differs from the default one (-default +example):\n%s", d)
	}
	job := c.Jobs["morning"]
	job.Schedule, job.Prompt = "", ""
	if d := cmp.Diff(defaultJob(), job); d != "" {
		t.Errorf("the job of the example differs from the default one (-default +example):\n%s", d)
	}
	hook := c.Webhooks.Hooks["deploy"]
	hook.Prompt = ""
	if d := cmp.Diff(defaultHook(), hook); d != "" {
		t.Errorf("the webhook of the example differs from the default one (-default +example):\n%s", d)
	}
	want := SandboxProject{Dir: "~/web", SandboxSetting: defaultSandboxSetting()}
	want.Mode = SandboxDocker
	if d := cmp.Diff(want, c.Sandbox.Projects["web"]); d != "" {
		t.Errorf("the project of the example differs from what it says (-want +example):\n%s", d)
	}
	if d := cmp.Diff(defaultRole(), got); d != "" {
		t.Errorf("the role of the example differs from the default role (-default +example):\n%s", d)
	}
}

func TestExampleHasEveryKey(t *testing.T) {
	doc, _, _ := decode([]byte(withRole(exampleText(t))))
	var c Config
	var role Role
	var user User
	var alias Alias
	var acp ACP
	keys := append(keysOf(reflect.ValueOf(&c).Elem(), ""), keysOf(reflect.ValueOf(&role).Elem(), "roles.reviewer.")...)
	keys = append(keys, keysOf(reflect.ValueOf(&user).Elem(), "users.123456789.")...)
	keys = append(keys, keysOf(reflect.ValueOf(&alias).Elem(), "models.fast.")...)
	keys = append(keys, keysOf(reflect.ValueOf(&acp).Elem(), "agents.acp.goose.")...)
	var job Job
	var hook Hook
	keys = append(keys, keysOf(reflect.ValueOf(&job).Elem(), "jobs.morning.")...)
	keys = append(keys, keysOf(reflect.ValueOf(&hook).Elem(), "webhooks.hooks.deploy.")...)
	if len(keys) < 60 {
		t.Fatalf("only %d keys were found in Config; the test looks at the wrong thing", len(keys))
	}
	for _, key := range keys {
		if _, ok := doc.positions[key]; !ok {
			t.Errorf("config.toml.example has no %s", key)
		}
	}
}

func TestExampleSaysWhy(t *testing.T) {
	lines := strings.Split(exampleText(t), "\n")
	key := regexp.MustCompile(`^#?[a-z_]+ = `)
	for i, line := range lines {
		if key.MatchString(line) && !strings.HasPrefix(lines[i-1], "# ") {
			t.Errorf("config.toml.example:%d: %q has no line of why above it", i+1, line)
		}
	}
}

func TestExampleNeedsOnlyTheToken(t *testing.T) {
	path := write(t, 0o600, strings.Replace(exampleText(t), `token = ""`, `token = "`+token+`"`, 1))
	if _, err := LoadFrom(path, environment(nil)); err != nil {
		t.Error(err)
	}
}
