package agent

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func FuzzCommandLines(f *testing.F) {
	for _, seed := range []string{
		"-p\x00--output-format\x00json\x00--\x00-x", "--add-dir=\x00-p", "exec\x00--json\x00-i\x00a\x00-\x00-c",
		"exec\x00resume\x00ID",
		"--allowedTools\x00Bash(a,b),Edit)(", "-", "--", "=", "app-server\x00-c\x00a=b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		if a, err := parseClaude(args); err == nil && a.wrong(nil) == "" && !a.print {
			t.Error("accepted without -p")
		}
		if a, err := parseCodex(args); err == nil && a.config == nil {
			t.Error("no config")
		}
	})
}

func FuzzLiveInput(f *testing.F) {
	for _, seed := range []string{
		`{"type":"user","message":{"content":[{"type":"text","text":"a"}]}}`, `{"type":"user","message":{"content":7}}`,
		`{"type":"control_request","request":{"subtype":"interrupt"}}`, `{"type":"control_response","response":null}`,
		`{"type":"control_request","request":{"subtype":"set_model"}}`, `[]`, `null`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var out, stderr strings.Builder
		p := newProcess(t.Context(), Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &stderr})
		c := &claude{process: p, answers: newAnswers(), queue: newQueue()}
		code, ends := c.take(line, nil)
		if !json.Valid(line) && (!ends || code != 1 || stderr.Len() == 0) {
			t.Errorf("a line that is no JSON is fatal: %d, %v, %q", code, ends, &stderr)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answered with no JSON: %q", line)
			}
		}
	})
}

func FuzzServerInput(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"a"}}}`,
		`{"id":"x","method":"model/list","params":{"limit":-1}}`,
		`{"id":2,"method":"model/list","params":{"cursor":"9"}}`, `{"id":null,"method":1}`, `nonsense`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var out strings.Builder
		s := &server{process: newProcess(t.Context(),
			Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}), ready: true}
		s.threads = newCodexThreads(s)
		var in rpcLine
		if json.Unmarshal(line, &in) == nil && strings.Contains(in.Method, "/start") {
			return // a turn that begins here would run commands of the fuzzer's
		}
		s.take(line)
		if out.Len() > 0 && !json.Valid([]byte(strings.SplitN(out.String(), "\n", 2)[0])) {
			t.Errorf("answered with no JSON: %q", out.String())
		}
	})
}
