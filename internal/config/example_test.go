package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/docker"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/orchestrator"
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

// tableOf returns a table with its defaults.
func tableOf[T any]() (table T) {
	var d decoder
	d.setDefaults(reflect.ValueOf(&table).Elem())
	return table
}

func TestExampleIsTheDefaults(t *testing.T) {
	_, c, found := decode([]byte(exampleText(t)))
	if err := found.asError("example"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tableOf[Config](), c); d != "" {
		t.Errorf("config.toml.example differs from the defaults (-default +example):\n%s", d)
	}
	_, c, found = decode([]byte(withRole(exampleText(t))))
	if err := found.asError("example"); err != nil {
		t.Fatal(err)
	}
	got := c.Roles["reviewer"]
	got.Prompt = ""
	goose := c.Agents.ACP["goose"]
	if holds := goose.Holds[cli.Ask]; holds.Env["GOOSE_MODE"] != "approve" || len(goose.Holds) != 1 {
		t.Errorf("the agent of the example is held by %+v", goose.Holds)
	}
	goose.Path, goose.Holds, goose.Project.Env = "", nil, nil // an empty table is not nil
	if d := cmp.Diff(tableOf[acp.Settings](), goose); d != "" {
		t.Errorf("the agent of the example differs from the default one (-default +example):\n%s", d)
	}
	job := c.Jobs["morning"]
	job.Schedule, job.Prompt = "", ""
	if d := cmp.Diff(tableOf[heartbeat.JobSettings](), job); d != "" {
		t.Errorf("the job of the example differs from the default one (-default +example):\n%s", d)
	}
	hook := c.Webhooks.Hooks["deploy"]
	hook.Prompt = ""
	if d := cmp.Diff(tableOf[webhook.HookSettings](), hook); d != "" {
		t.Errorf("the webhook of the example differs from the default one (-default +example):\n%s", d)
	}
	want := SandboxProject{Dir: "~/web", Settings: tableOf[docker.Settings]()}
	want.Mode = orchestrator.SandboxDocker
	if d := cmp.Diff(want, c.Sandbox.Projects["web"]); d != "" {
		t.Errorf("the project of the example differs from what it says (-want +example):\n%s", d)
	}
	if d := cmp.Diff(tableOf[orchestrator.Role](), got); d != "" {
		t.Errorf("the role of the example differs from the default role (-default +example):\n%s", d)
	}
}

func TestExampleHasEveryKey(t *testing.T) {
	doc, _, _ := decode([]byte(withRole(exampleText(t))))
	for key, s := range everySetting() {
		if _, ok := doc.positions[key]; !ok && isValue(s) && !strings.HasPrefix(key, "sandbox.projects.") {
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
