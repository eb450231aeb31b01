package roles

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Roles come from ductor, from files and from the configuration. Later ones have priority.
func TestRolesComeFromThreePlaces(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const header = "agent: codex\nmodel: gpt-5\nappend: true\ndenied_tools: [shell, mcp:github]\n"
	write("tester.md", "---\n"+header+"---\n\nYou test.\n")
	write("planner.md", "My own planner.")
	write("writer.md", "From the file.")
	write("alone.md", "---\nappend: false\n---\nNothing but this.")
	write("notes.txt", "no role")
	write("broken.md", "---\nagent: [\n---\nx")
	write("empty.md", "---\nagent: codex\n---\n")
	write("long.md", strings.Repeat("x", maxBytes+1))
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := time.Now()
	clock := func() time.Time { return now }
	configured := map[string]orchestrator.Role{"writer": {Prompt: "From the configuration."}}
	s := Open(dir, configured, clock, slog.New(slog.NewTextHandler(&log, nil)))
	if got := s.Names(); strings.Join(got, " ") != "alone codereviewer default planner tester writer" {
		t.Errorf("the roles are %q", got)
	}
	for name, want := range map[string]orchestrator.Role{
		"tester":  {Prompt: "You test.", Append: true, Agent: "codex", Model: "gpt-5", Tools: cli.ToolList{Denied: []string{"shell", "mcp:github"}}},
		"planner": {Prompt: "My own planner.", Append: true},
		"writer":  {Prompt: "From the configuration."},
		"alone":   {Prompt: "Nothing but this."},
	} {
		if got, ok := s.Role(name); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"broken.md", "empty.md", "long.md", "link.md"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("the log does not name %s:\n%s", name, log.String())
		}
	}

	write("tester.md", "You test more.")
	write("new.md", "You are new.")
	if err := os.Remove(filepath.Join(dir, "planner.md")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(checkInterval)
	if r, _ := s.Role("tester"); r.Prompt != "You test more." {
		t.Errorf("the changed file is %+v", r)
	}
	if r, _ := s.Role("planner"); !strings.HasPrefix(r.Prompt, "You plan") || !r.Append {
		t.Errorf("the planner that ships is %+v", r)
	}
	if _, ok := s.Role("new"); !ok {
		t.Error("the new file is no role")
	}
}

func TestWithoutAFolder(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		s := Open(dir, nil, time.Now, slog.New(slog.DiscardHandler))
		if got, want := s.Names(), []string{"codereviewer", "default", "planner"}; !slices.Equal(got, want) {
			t.Errorf("the roles are %q, want %q", got, want)
		}
	}
}
