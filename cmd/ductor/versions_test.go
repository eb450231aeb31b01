package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// testedAgents are the agents that tests drive. name is their label in docs/agents.md, pkg the package that test/agents
// pins.
var testedAgents = []struct{ name, pkg string }{
	{"Claude Code", "@anthropic-ai/claude-code"}, {"Codex", "@openai/codex"},
	{"Gemini", "@google/gemini-cli"}, {"Copilot", "@github/copilot"},
	{"OpenCode", "opencode-ai"}, {"Qwen Code", "@qwen-code/qwen-code"}, {"Cline", "@cline/cli-linux-x64"},
	{"codex-acp", "@agentclientprotocol/codex-acp"}, {"claude-agent-acp", "@agentclientprotocol/claude-agent-acp"},
}

const (
	versionsBegin = "<!-- versions: `go test ./cmd/ductor -run TestTheDocsNameTheVersions -update` asks npm " +
		"and writes this table -->\n"
	versionsEnd = "<!-- end of versions -->"
)

// docs/agents.md names the versions that the tests drive, and the newest ones on npm at the last look. For the agents
// with a dialect of their own, these are the same.
func TestTheDocsNameTheVersions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	day := string(regexp.MustCompile(`newest on npm, (\d{4}-\d\d-\d\d)`).FindSubmatch(page)[1])
	if *updateDocs {
		day = time.Now().Format(time.DateOnly)
	}
	table := fmt.Sprintf("%s| agent | version that the tests drive | newest on npm, %s |\n|---|---|---|\n",
		versionsBegin, day)
	pins := pinnedAgents(t)
	for i, agent := range testedAgents {
		newest := regexp.MustCompile(`(?m)^\| ` + agent.name + ` \| \S+ \| (\S+) \|`).FindStringSubmatch(string(page))
		if *updateDocs {
			said, err := exec.CommandContext(t.Context(), "npm", "view", agent.pkg, "version").Output()
			if err != nil {
				t.Fatalf("ask npm for %s: %v", agent.pkg, err)
			}
			newest = []string{"", strings.TrimSpace(string(said))}
		}
		if len(newest) == 0 {
			t.Fatalf("docs/agents.md has no versions of %s; run it with -update", agent.name)
		}
		if i < 4 && newest[1] != pins[agent.pkg] {
			t.Errorf("%s %s is published; test/agents pins %s", agent.name, newest[1], pins[agent.pkg])
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", agent.name, pins[agent.pkg], newest[1])
	}
	checkTable(t, versionsBegin, versionsEnd, table, *updateDocs)
}

// pinnedAgents returns the versions in test/agents/package.json, by package.
func pinnedAgents(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "test", "agents", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sorts map[string]json.RawMessage
	pins := map[string]string{}
	if err := json.Unmarshal(raw, &sorts); err != nil {
		t.Fatal(err)
	}
	for _, sort := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
		if err := json.Unmarshal(sorts[sort], &pins); err != nil {
			t.Fatal(err)
		}
	}
	return pins
}

// checkTable compares a generated table with the one in docs/agents.md between two marks, or writes it there. The table
// begins with begin.
func checkTable(t testing.TB, begin, end, table string, write bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "agents.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	between := `(?s)` + regexp.QuoteMeta(begin) + `.*?` + regexp.QuoteMeta(end)
	have := regexp.MustCompile(between).FindString(string(page))
	switch want := table + end; {
	case have == want:
	case write && have != "":
		if err := os.WriteFile(path, []byte(strings.Replace(string(page), have, want, 1)), 0o644); err != nil {
			t.Fatalf("write the table: %v", err)
		}
	default:
		t.Errorf("docs/agents.md says\n%s\nbut it should be\n%s", have, want)
	}
}
