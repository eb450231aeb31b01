package cli

import "testing"

func TestWhatAListPermits(t *testing.T) {
	denied := ToolList{Denied: []string{"Bash", "mcp:github", "Edit(/etc/*)"}}
	for tool, want := range map[string]bool{
		"Bash": false, "Edit": true, "mcp__github__create": false, "github.create": false, "github-create": false, "mcp_github_create": false,
		"mcp__gitlab__create": true,
	} {
		if got := denied.Permits(tool); got != want {
			t.Errorf("%s: %v", tool, got)
		}
	}
	if only := (ToolList{Only: []string{"Read"}}); only.Permits("Bash") || !only.Permits("Read") {
		t.Error("a list says which tools there are, and others may be used")
	}
}
