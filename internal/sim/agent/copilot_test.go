package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copilotLines runs the scripted Copilot once and returns its output.
func copilotLines(t *testing.T, home, prompt string, args ...string) (events []map[string]any, code int,
	stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := []string{"HOME=" + home, "GH_TOKEN=x", "PATH=" + os.Getenv("PATH")}
	code = Main(append([]string{"copilot", "--output-format", "json"}, args...), strings.NewReader(prompt), &out, &errs,
		env)
	for line := range strings.Lines(out.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("no JSON: %q", line)
		}
		events = append(events, e)
	}
	return events, code, errs.String()
}

func TestCopilotOneShot(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "asked")
	events, code, _ := copilotLines(t, home, `about whales [[ask cmd="touch `+file+`"]] [[text "Done."]]`)
	last := events[len(events)-1]
	id, _ := last["sessionId"].(string)
	if code != 0 || last["type"] != "result" || last["exitCode"] != 0.0 || id == "" {
		t.Errorf("exit %d, last %v", code, last)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("what must be asked for ran without being asked for")
	}
	if _, code, _ := copilotLines(t, home, `[[ask cmd="touch `+file+`"]]`, "--allow-all", "--resume="+id); code != 0 {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("what was allowed did not run")
	}
	if events, code, _ := copilotLines(t, home, "[[error 400]]"); code != 1 ||
		events[len(events)-1]["exitCode"] != 1.0 {
		t.Errorf("an error of the model: exit %d", code)
	}
	if _, code, stderr := copilotLines(t, home, "x", "--resume=nobody"); code != 1 ||
		!strings.Contains(stderr, "No session") {
		t.Errorf("a session that is not there: exit %d, %q", code, stderr)
	}
	if _, code, stderr := copilotLines(t, home, "x", "--unheard-of"); code != 1 ||
		!strings.Contains(stderr, "unexpected argument") {
		t.Errorf("a flag that is not there: exit %d, %q", code, stderr)
	}
}

// TestCopilotEventsAreThoseOfTheRealOne tests that each kind of event was recorded from the real Copilot with at
// least the same fields.
func TestCopilotEventsAreThoseOfTheRealOne(t *testing.T) {
	home := t.TempDir()
	events, _, _ := copilotLines(t, home, `[[think "hm"]] [[text "a"]] [[tool "echo hi"]] [[write path="`+home+
		`/x" text="y"]] [[error 500 times=1]] [[text "b"]]`, "--allow-all")
	real := map[string]map[string]bool{}
	files, err := filepath.Glob("testdata/recorded/copilot/*.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var e map[string]any
			if json.Unmarshal([]byte(line), &e) == nil {
				note(real, e)
			}
		}
	}
	for _, e := range events {
		fields := real[e["type"].(string)]
		if fields == nil {
			t.Errorf("never recorded: %v", e["type"])
			continue
		}
		data, _ := e["data"].(map[string]any)
		for name := range data {
			if !fields[name] {
				t.Errorf("%v never had %s", e["type"], name)
			}
		}
	}
}

func note(real map[string]map[string]bool, e map[string]any) {
	kind, _ := e["type"].(string)
	if real[kind] == nil {
		real[kind] = map[string]bool{}
	}
	data, _ := e["data"].(map[string]any)
	for name := range data {
		real[kind][name] = true
	}
}

func FuzzCopilotFrames(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("Content-Length: -1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := bufio.NewReader(bytes.NewReader(raw))
		for range len(raw) + 1 {
			body, err := readFrame(in)
			if err != nil {
				return
			}
			if len(body) > len(raw) {
				t.Fatalf("%d bytes of %d", len(body), len(raw))
			}
		}
	})
}
