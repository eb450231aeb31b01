package claude

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestToolTitle(t *testing.T) {
	tests := []struct{ tool, input, want string }{
		{"Bash", `{"command":"go test ./...\n\tgo vet","description":"Run tests"}`, "go test ./... go vet"},
		{"Bash", `{"description":"Run tests"}`, "Run tests"},
		{"Read", `{"file_path":"/srv/proj/cmd/main.go"}`, "cmd/main.go"},
		{"Edit", `{"file_path":"/etc/hosts","old_string":"a","new_string":"b"}`, "/etc/hosts"},
		{"Write", `{"file_path":"/srv/project/x"}`, "/srv/project/x"},
		{"NotebookEdit", `{"notebook_path":"/srv/proj/n.ipynb"}`, "n.ipynb"},
		{"Grep", `{"pattern":"func main","path":"/srv/proj"}`, "func main"},
		{"Glob", `{"pattern":"**/*.go"}`, "**/*.go"},
		{"WebFetch", `{"url":"https://go.dev","prompt":"What is new?"}`, "https://go.dev"},
		{"WebSearch", `{"query":"go 1.26"}`, "go 1.26"},
		{"Task", `{"description":"look around","prompt":"a long prompt"}`, "look around"},
		{"Skill", `{"skill":"verify"}`, "verify"},
		{"AskUserQuestion", `{"questions":[{"question":"Which color?"}]}`, "Which color?"},
		{"ExitPlanMode", `{"plan":"# Plan\n1. do it"}`, "# Plan 1. do it"},
		{"mcp__tg__send_file", `{"path":"/srv/proj/out.png"}`, "out.png"},
		{"Unheard", `{"n":1}`, ""},
		{"Bash", `not json`, ""},
		{"Bash", ``, ""},
	}
	for _, tt := range tests {
		if got := toolTitle(tt.tool, json.RawMessage(tt.input), "/srv/proj"); got != tt.want {
			t.Errorf("toolTitle(%s, %s) = %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
}

func TestToolTitleIsShortAndValid(t *testing.T) {
	input, err := json.Marshal(map[string]string{"command": strings.Repeat("é ", 100_000)})
	if err != nil {
		t.Fatal(err)
	}
	got := toolTitle("Bash", input, "")
	if len(got) > maxTitle || !utf8.ValidString(got) || strings.Contains(got, "\n") {
		t.Errorf("got %d bytes %q", len(got), got)
	}
}
