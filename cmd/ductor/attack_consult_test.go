package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// readingTools returns calls that read the files below a path. A consulted Codex has no such tool.
func readingTools() map[string][]string {
	return map[string][]string{
		"claude":  {`Read {"file_path": %q}`, `Grep {"pattern": "private", "output_mode": "content", "path": %q}`},
		"codex":   {},
		"gemini":  {`read_file {"file_path": %q}`, `grep_search {"pattern": "private", "dir_path": %q}`},
		"copilot": {`view {"path": %q}`, `grep {"pattern": "private", "output_mode": "content", "paths": %q}`},
	}
}

// A consulted real agent can only read the project: it has no shell and no tools that read other files, and a link in
// the project leads nowhere. The audit lists the files that it read.
func TestAttackAConsultedAgentReadsTheProjectOnly(t *testing.T) {
	agents := readingTools()
	if !testprogram.Long() {
		agents = map[string][]string{"codex": nil}
	}
	for agent, calls := range agents {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, nil)
			work, outside := town.cfg.Projects.DefaultDir, t.TempDir()
			for path, text := range map[string]string{filepath.Join(outside, "file"): "my private words",
				filepath.Join(work, "notes"): "words of the project, not private"} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(outside, filepath.Join(work, "link")); err != nil {
				t.Fatal(err)
			}
			town.say(`/consult %s [[start]] [[tool cmd="cat %s/file; touch ran" as=%s]] [[text "the shell is over"]]`,
				agent, outside, shellTools()[agent])
			town.await("the shell is over")
			for i, call := range calls {
				for j, path := range []string{filepath.Join(outside, "file"), filepath.Join(work, "link", "file"),
					filepath.Join(work, "notes")} {
					name, args, _ := strings.Cut(fmt.Sprintf(call, path), " ")
					end := fmt.Sprintf("call %d of %d is over", j, i)
					town.say(`/consult %s [[start]] [[call %s args=%q]] [[text %q]]`, agent, name, args, end)
					town.await(end)
				}
			}
			if strings.Contains(api.Asked(), "my private words") {
				t.Error("the model was shown a file outside of the project")
			}
			if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
				t.Error("the shell ran")
			}
			may := strings.Contains(api.Asked(), "you may read the files of the project")
			if may == (agent == "codex") {
				t.Errorf("the model is told that it may read files: %v", may)
			}
			for _, r := range api.Prompts() {
				if slices.Contains(r.Tools, shellTools()[agent]) || agent == "codex" &&
					slices.Contains(r.Tools, "view_image") {
					t.Errorf("the model is offered %v", r.Tools)
				}
			}
			if len(calls) == 0 || agent == "copilot" { // Copilot also asks to read its project, which no user can allow
				return
			}
			if !strings.Contains(api.Asked(), "words of the project") {
				t.Error("the model was not shown a file of the project")
			}
			town.say("/audit")
			town.await("notes")
		})
	}
}

// A turn that was not started by a listed user cannot consult a model.
func TestAttackUnattendedTurnsConsultNoModel(t *testing.T) {
	agents := []string{"codex", "claude", "gemini", "copilot"}
	for _, agent := range realagent.Some(agents...) {
		t.Run(agent, func(t *testing.T) {
			addr := unusedAddr(t)
			name := map[string]string{"copilot": "ductor-consult_with"}[agent]
			if name == "" {
				name = "consult_with"
			}
			args := fmt.Sprintf(`{"model":%q,"question":"the question"}`, agent)
			town, api := realTown(t, agent, func(c *config.Config) {
				c.Webhooks.Listen = addr
				c.Webhooks.Hooks = map[string]webhook.HookSettings{
					"ask": unattended(fmt.Sprintf(`[[start]] [[call %s args=%q]] [[text "the run ended"]]`, name, args), "own", orchestrator.Rights{}),
				}
			})
			w := &webhookTown{webhookDaemon: &webhookDaemon{town: town, addr: addr, client: &http.Client{Timeout: patience}}}
			t.Cleanup(w.client.CloseIdleConnections)
			w.hook("ask")
			w.await("the run ended")
			if asked := api.Asked(); !strings.Contains(asked, "only a turn that a listed user asked for") ||
				strings.Contains(asked, "answered; session_id") {
				t.Errorf("the model was consulted, or not told why it is not: %d bytes", len(asked))
			}
		})
	}
}
