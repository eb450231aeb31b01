package conversation_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// The settings of a project apply to the turns in it: its files start each session of an agent, once, and its tool list
// applies.
func TestWhatAProjectSetsCountsInIt(t *testing.T) {
	root := t.TempDir()
	shop := filepath.Join(root, "shop")
	if err := os.MkdirAll(filepath.Join(shop, "api"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shop, "RULES.md"), []byte("Sell nothing.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Dir, o.Roots = root, []string{root}
		o.DeniedTools = []string{"web"}
		o.Projects = []orchestrator.ProjectPolicy{{
			Dir: shop, Context: []string{"RULES.md", "missing.md"}, Tools: cli.ToolList{Denied: []string{"shell"}},
		}}
	})
	ask := func(prompt string) cli.Request {
		t.Helper()
		h.submit(t, here, prompt)
		h.await(t, "done "+prompt)
		return h.last()
	}
	denied := func(r cli.Request) (all []string) {
		for _, l := range r.ToolLists {
			all = append(all, l.Denied...)
		}
		return all
	}
	if r := ask("outside"); r.Prompt != "outside" || !slices.Equal(denied(r), []string{"web"}) {
		t.Errorf("outside of the project it is asked %q, without %q", r.Prompt, denied(r))
	}
	if _, err := h.SetDir(t.Context(), here, filepath.Join(shop, "api"), owner); err != nil {
		t.Fatal(err)
	}
	if r := ask("first"); !strings.Contains(r.Prompt, "Sell nothing.") || !strings.HasSuffix(r.Prompt, "first") || !slices.Equal(denied(r), []string{"web", "shell"}) {
		t.Errorf("in the project it is asked %q, without %q", r.Prompt, denied(r))
	}
	if log := strings.Join(h.chat.log(), "\n"); !strings.Contains(log, "missing.md") {
		t.Errorf("the chat is not told of a file that is left out:\n%s", log)
	}
	if r := ask("second"); r.Prompt != "second" {
		t.Errorf("the next prompt of the session is %q", r.Prompt)
	}
	if err := h.SetModel(t.Context(), here, "codex", "", ""); err != nil {
		t.Fatal(err)
	}
	if r := ask("third"); strings.Count(r.Prompt, "Sell nothing.") != 1 || !strings.Contains(r.Prompt, "first") {
		t.Errorf("an agent that joins is asked %q", r.Prompt)
	}
}
