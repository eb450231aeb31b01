package realagent_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/realagent"
)

func codexArgs(more ...string) []string {
	return append([]string{"exec", "--json", "--skip-git-repo-check"}, more...)
}

// items are the completed items of a kind.
func (r run) items(kind string) []map[string]any {
	var all []map[string]any
	for _, e := range r.find("item.completed") {
		if item := e["item"].(map[string]any); item["type"] == kind {
			all = append(all, item)
		}
	}
	return all
}

func (r run) answer(t *testing.T) string {
	t.Helper()
	messages := r.items("agent_message")
	if len(messages) == 0 {
		t.Fatalf("no message; exit %d, stderr %q, events %v", r.code, r.stderr, r.events)
	}
	return messages[len(messages)-1]["text"].(string)
}

func TestCodexAnswersAndThinks(t *testing.T) {
	api := realagent.Model(t, realagent.Key)
	r := runCLI(t, realagent.Codex(t, api.URL()),
		`hello [[think "hm"]][[text "Hello **world** «é»" chunk=4 delay=2ms]][[usage in=10 out=5 cached=3]]`, codexArgs("-")...)
	if r.answer(t) != "Hello **world** «é»" || len(r.items("reasoning")) != 1 {
		t.Errorf("events %v", r.events)
	}
	usage := r.last(t, "turn.completed")["usage"].(map[string]any)
	if usage["input_tokens"] != 10.0 || usage["cached_input_tokens"] != 3.0 || usage["output_tokens"] != 5.0 {
		t.Errorf("usage %v", usage)
	}
	asked := api.Prompts()
	if len(asked) != 1 || !strings.HasPrefix(asked[0].Prompt, "hello [[think") || asked[0].System == "" {
		t.Errorf("asked %+v", asked)
	}
}

func TestCodexRunsTools(t *testing.T) {
	for _, model := range []string{"gpt-5.5", "gpt-6.1-sol"} {
		t.Run(model, func(t *testing.T) {
			api := realagent.Model(t, realagent.Key)
			c := realagent.Codex(t, api.URL())
			r := runCLI(t, c, `[[text "first"]][[tool cmd="echo from-the-shell; exit 3"]][[write path="a.txt" text="written"]][[text "last"]]`,
				codexArgs("-m", model, "-s", "danger-full-access", "-")...)
			if r.answer(t) != "last" {
				t.Errorf("events %v", r.events)
			}
			commands := r.items("command_execution")
			if len(commands) != 1 || commands[0]["exit_code"] != 3.0 || commands[0]["aggregated_output"] != "from-the-shell\n" {
				t.Errorf("commands %v", commands)
			}
			if b, err := os.ReadFile(filepath.Join(c.Work, "a.txt")); err != nil || strings.TrimSpace(string(b)) != "written" {
				t.Errorf("file %q, %v", b, err)
			}
		})
	}
}

func TestCodexResumesInANewProcess(t *testing.T) {
	api := realagent.Model(t, realagent.Key)
	c := realagent.Codex(t, api.URL())
	first := runCLI(t, c, `my name is Ann [[text "ok"]]`, codexArgs("-")...)
	id := first.last(t, "thread.started")["thread_id"].(string)
	second := runCLI(t, c, `[[history]]`, codexArgs("resume", id, "-")...)
	if second.answer(t) != "1. my name is Ann" || second.last(t, "thread.started")["thread_id"] != id {
		t.Errorf("events %v", second.events)
	}
}

func TestCodexSaysWhatTheAPIRefused(t *testing.T) {
	realagent.LongOnly(t)
	tests := map[string]struct{ prompt, says string }{
		"429":        {`x [[error 429]]`, "429 Too Many Requests"},
		"400":        {`x [[error 400 message="prompt is odd"]]`, "prompt is odd"},
		"401":        {`x [[error 401]]`, "401 Unauthorized"},
		"overloaded": {`x [[text "so"]][[error 529]]`, "at capacity"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := realagent.Model(t, realagent.Key)
			r := runCLI(t, realagent.Codex(t, api.URL()), tt.prompt, codexArgs("-c", "model_providers.sim.stream_max_retries=1", "-")...)
			failed := r.last(t, "turn.failed")["error"].(map[string]any)
			if !strings.Contains(failed["message"].(string), tt.says) {
				t.Errorf("failed with %v", failed)
			}
		})
	}
}

func TestCodexRecoversFromABrokenStream(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	r := runCLI(t, realagent.Codex(t, api.URL()), `[[retry-text "half of"]][[text "the whole answer"]]`, codexArgs("-")...)
	if r.answer(t) != "the whole answer" || len(r.find("error")) != 1 {
		t.Errorf("events %v", r.events)
	}
}

func TestCodexIsSilentWhileTheAPIHangs(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	cmd, out, _ := start(t, realagent.Codex(t, api.URL()), `[[hang]]`, codexArgs("-")...)
	awaitPrompt(t, api)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed by us
	if strings.Contains(out.String(), `"turn.completed"`) || strings.Contains(out.String(), `"turn.failed"`) {
		t.Errorf("an end out of silence: %s", out)
	}
}

func TestCodexShowsThePictureToTheModel(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	c := realagent.Codex(t, api.URL())
	picture := filepath.Join(c.Work, "p.png")
	if err := os.WriteFile(picture, tinyPNG(t), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCLI(t, c, `look [[text "seen"]]`, codexArgs("-i", picture, "--", "-")...)
	asked := api.Prompts()
	if r.answer(t) != "seen" || len(asked) != 1 || len(asked[0].Images) != 1 || asked[0].Images[0].MIME != "image/png" {
		t.Errorf("asked %d times; %v", len(asked), r.events)
	}
}

func TestCodexListsItsModels(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	c := realagent.Codex(t, api.URL())
	cmd := exec.CommandContext(t.Context(), c.Path, "app-server")
	cmd.Dir, cmd.Env = c.Work, c.Environ()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	requests := `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"method":"initialized"}` + "\n" + `{"id":2,"method":"model/list","params":{}}` + "\n"
	if _, err := io.WriteString(in, requests); err != nil {
		t.Fatal(err)
	}
	models := 0
	for r := bufio.NewReader(out); models == 0; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no list of models: %v", err)
		}
		var reply struct {
			ID     int
			Result struct{ Data []struct{ ID string } }
		}
		if json.Unmarshal(line, &reply) == nil && reply.ID == 2 {
			models = len(reply.Result.Data)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("app-server ended with %v", err)
	}
}
