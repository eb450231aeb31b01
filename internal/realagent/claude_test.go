package realagent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

var claudeArgs = []string{"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"}

// deltas is the text that was streamed.
func (r run) deltas() string {
	var b strings.Builder
	for _, e := range r.find("stream_event") {
		ev := e["event"].(map[string]any)
		if d, ok := ev["delta"].(map[string]any); ok && d["type"] == "text_delta" {
			b.WriteString(d["text"].(string))
		}
	}
	return b.String()
}

func TestClaudeStreamsTextAndThinking(t *testing.T) {
	api := realagent.Model(t, realagent.Key)
	r := runCLI(t, realagent.Claude(t, api.URL()),
		`hello [[think "hm, let me see" chunk=4]][[text "Hello **world** «é»" chunk=4 delay=2ms]][[usage in=10 out=5 cached=3]]`, claudeArgs...)
	result := r.last(t, "result")
	if result["is_error"] != false || result["result"] != "Hello **world** «é»" || r.deltas() != "Hello **world** «é»" {
		t.Errorf("result %v, deltas %q", result, r.deltas())
	}
	if usage := result["usage"].(map[string]any); usage["input_tokens"] != 10.0 || usage["output_tokens"] != 5.0 {
		t.Errorf("usage %v", usage)
	}
	asked := api.Prompts()
	if len(asked) != 1 || !strings.HasPrefix(asked[0].Prompt, "hello [[think") || !asked[0].Stream || asked[0].System == "" {
		t.Errorf("asked %+v", asked)
	}
}

func TestClaudeRunsTools(t *testing.T) {
	api := realagent.Model(t, realagent.Key)
	c := realagent.Claude(t, api.URL())
	r := runCLI(t, c, `[[text "first"]][[tool cmd="echo from-the-shell"]][[write path="`+filepath.Join(c.Work, "a.txt")+
		`" text="written"]][[text "last"]]`, append(claudeArgs, "--permission-mode", "acceptEdits")...)
	if result := r.last(t, "result"); result["result"] != "last" || result["num_turns"] != 3.0 {
		t.Errorf("result %v", result)
	}
	if b, err := os.ReadFile(filepath.Join(c.Work, "a.txt")); err != nil || string(b) != "written" {
		t.Errorf("file %q, %v", b, err)
	}
	asked := api.Prompts()
	if len(asked) != 3 || asked[2].Position != 2 || !strings.Contains(string(asked[1].Body), "from-the-shell") {
		t.Errorf("%d requests", len(asked))
	}
}

func TestClaudeIsDeniedWhatItMustAskFor(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	c := realagent.Claude(t, api.URL())
	r := runCLI(t, c, `[[ask cmd="touch made.txt"]][[text "after"]]`, claudeArgs...)
	if result := r.last(t, "result"); result["result"] != "after" {
		t.Errorf("result %v", result)
	}
	if _, err := os.Stat(filepath.Join(c.Work, "made.txt")); err == nil {
		t.Error("the command ran without being asked for")
	}
}

func TestClaudeResumesInANewProcess(t *testing.T) {
	api := realagent.Model(t, realagent.Key)
	c := realagent.Claude(t, api.URL())
	first := runCLI(t, c, `my name is Ann [[text "ok"]]`, claudeArgs...)
	id := first.last(t, "result")["session_id"].(string)
	second := runCLI(t, c, `[[history]]`, append(claudeArgs, "--resume", id)...)
	if result := second.last(t, "result"); result["result"] != "1. my name is Ann" || result["session_id"] != id {
		t.Errorf("result %v", result)
	}
}

func TestClaudeRetriesWhatTheAPIRefuses(t *testing.T) {
	realagent.LongOnly(t)
	tests := map[string]struct {
		prompt  string
		status  any
		says    string
		retries int
	}{
		"401":                {`x [[error 401]]`, 401.0, "Invalid API key", 1},
		"429":                {`x [[error 429 retry_after=1]]`, 429.0, "Request rejected (429)", 1},
		"529":                {`x [[error 529]]`, 529.0, "529 Overloaded", 1},
		"400":                {`x [[error 400 message="prompt is odd"]]`, 400.0, "prompt is odd", 0},
		"404":                {`x [[error 404]]`, 404.0, "issue with the selected model", 0},
		"an error wears off": {`x [[error 500 times=1]][[text "fine"]]`, nil, "fine", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := realagent.Model(t, realagent.Key)
			c := realagent.Claude(t, api.URL())
			c.Vars["CLAUDE_CODE_MAX_RETRIES"] = "1"
			r := runCLI(t, c, tt.prompt, claudeArgs...)
			result := r.last(t, "result")
			if result["api_error_status"] != tt.status || !strings.Contains(result["result"].(string), tt.says) {
				t.Errorf("result %v", result)
			}
			retries := 0
			for _, e := range r.find("system") {
				if e["subtype"] == "api_retry" {
					retries++
				}
			}
			if retries != tt.retries {
				t.Errorf("%d retries, want %d", retries, tt.retries)
			}
		})
	}
}

func TestClaudeRecoversFromABrokenStream(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	r := runCLI(t, realagent.Claude(t, api.URL()), `[[retry-text "half of"]][[text "the whole answer"]]`, claudeArgs...)
	if result := r.last(t, "result"); result["result"] != "the whole answer" || result["is_error"] != false {
		t.Errorf("result %v", result)
	}
	// How much of the broken stream was read is up to the machine. The answer comes as another message.
	if torn, whole := strings.CutSuffix(r.deltas(), "the whole answer"); !whole || !strings.HasPrefix("half of", torn) {
		t.Errorf("deltas %q", r.deltas())
	}
	if asked := api.Prompts(); len(asked) != 2 || !asked[0].Stream || !asked[1].Stream {
		t.Errorf("asked %d times", len(asked))
	}
}

func TestClaudeIsSilentWhileTheAPIHangs(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	c := realagent.Claude(t, api.URL())
	cmd, out, _ := start(t, c, `[[text "before "]][[hang]]`, claudeArgs...)
	awaitPrompt(t, api)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed by us
	if strings.Contains(out.String(), `"type":"result"`) {
		t.Errorf("a result out of silence: %s", out)
	}
}

func awaitPrompt(t *testing.T, api *modelapi.Server) {
	t.Helper()
	err := api.Await(t.Context(), func(all []modelapi.Request) bool {
		return len(all) > 0 && all[len(all)-1].API != modelapi.Other
	})
	if err != nil {
		t.Fatalf("the model was never asked: %v", err)
	}
}
