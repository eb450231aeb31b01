package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/naming"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/mcp/servers"
	"ductor/orchestrator"
)

const referencePath = "../../docs/reference.md"

// everySetting returns all settings and tables by their keys. The named tables have the names of config.toml.example.
func everySetting() map[string]setting {
	c := Config{
		Users: map[string]User{"123456789": {}}, Roles: map[string]orchestrator.Role{"reviewer": {}},
		Models: map[string]naming.Alias{"fast": {}}, Jobs: map[string]heartbeat.JobSettings{"morning": {}},
	}
	work := map[string]cli.AccountSettings{"work": {}}
	c.Agents.ACP = map[string]acp.Settings{
		"goose": {Holds: map[cli.PermissionMode]acp.Holding{cli.Ask: {}}, Accounts: work},
	}
	for _, a := range []*Agent{&c.Agents.Claude, &c.Agents.Codex.Agent, &c.Agents.Gemini, &c.Agents.Copilot} {
		a.Accounts = work
	}
	c.Webhooks.Hooks = map[string]webhook.HookSettings{"deploy": {}}
	c.Sandbox.Projects = map[string]SandboxProject{"web": {}}
	c.MCP.Servers = map[string]servers.Settings{"github": {}}
	c.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": {}}
	all := map[string]setting{}
	visit(setting{value: reflect.ValueOf(c)}, func(s setting) { all[s.key] = s })
	return all
}

// docs/reference.md has a table for each section of the configuration: its types come from Config, its defaults and its
// sentences from config.toml.example. Run with -update after a change of either.
func TestReferenceIsOfTheTypes(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("docs/reference.md is not of these types; run go test ./internal/config -update (-want +page):\n%s", d)
	}
}

func reference(t *testing.T) string {
	settings := everySetting()
	var b strings.Builder
	b.WriteString("# All keys of the configuration\n\nWritten by `go test ./internal/config -update` from the types of the program and from " +
		"[config.toml.example](../config.toml.example).\n[configuration.md](configuration.md) has the rules. A name that you choose, such as that of a role, is an example here.\n")
	section, said := "", []string(nil)
	setting := regexp.MustCompile(`^([a-z_0-9]+) = (.*)$`)
	for _, line := range strings.Split(withRole(exampleText(t)), "\n") {
		switch key := setting.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "# "):
			said = append(said, strings.TrimPrefix(line, "# "))
			continue
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
			fmt.Fprintf(&b, "\n## [%s]\n\n", section)
			if len(said) > 0 {
				b.WriteString(strings.Join(said, " ") + "\n\n")
			}
			b.WriteString("| key | type | example or default | a change applies | what it does |\n|---|---|---|---|---|\n")
		case key != nil:
			name := section + "." + key[1]
			of, ok := settings[name]
			if !ok {
				t.Errorf("the example has %s, no type does", name)
				continue
			}
			delete(settings, name)
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", key[1], typeInWords(of.value.Type()), cell(key[2]), of.applies, cell(strings.Join(said, " ")))
		}
		said = nil
	}
	for name, s := range settings {
		if isValue(s) && !strings.HasPrefix(name, "sandbox.projects.") { // it says that all keys of [sandbox] may stand there
			t.Errorf("the example has no %s", name)
		}
	}
	return b.String()
}

// cell is a text as it may stand in a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func typeInWords(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[time.Duration]():
		return "duration"
	case of.Kind() == reflect.Slice:
		return "list of " + strings.TrimSuffix(typeInWords(of.Elem()), "s") + "s"
	case of.Kind() == reflect.Map:
		return "table of texts"
	case of.Kind() == reflect.Bool:
		return "true or false"
	case of.Kind() == reflect.String:
		return "text"
	case of.Kind() == reflect.Pointer:
		return typeInWords(of.Elem())
	default:
		return "number"
	}
}
