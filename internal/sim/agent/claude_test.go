package agent_test

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ductor/internal/sim/agent"
)

func TestClaudeStreamsWhatItSays(t *testing.T) {
	r := newPlace(t).claude(t,
		`[[think "hm"]][[text "Hello **world** «é»" chunk=3]][[usage in=10 out=5 cached=3 cost=0.5]]`)
	var deltas, whole strings.Builder
	for _, e := range r.events() {
		if e["type"] == "assistant" {
			if b := e["message"].(event)["content"].([]any)[0].(event); b["type"] == "text" {
				whole.WriteString(b["text"].(string))
			}
		}
		if ev, ok := e["event"].(event); ok {
			if d, ok := ev["delta"].(event); ok && d["type"] == "text_delta" {
				deltas.WriteString(d["text"].(string))
			}
		}
	}
	const want = "Hello **world** «é»"
	if deltas.String() != want || whole.String() != want || r.result() != want {
		t.Errorf("deltas %q, whole %q, result %q", &deltas, &whole, r.result())
	}
	result := r.last("result")
	if u := result["usage"].(event); u["input_tokens"] != 10.0 || u["output_tokens"] != 5.0 ||
		u["cache_read_input_tokens"] != 3.0 {
		t.Errorf("usage %v", u)
	}
	if result["total_cost_usd"] != 0.5 || r.status.ExitStatus() != 0 {
		t.Errorf("result %v, status %v", result, r.status)
	}
}

func TestClaudeWithoutPartialMessagesPrintsWholeOnesOnly(t *testing.T) {
	r := newPlace(t).run(t, `[[text "a" ]][[tool "echo hi"]][[text "b"]]`, "claude", "-p", "--output-format",
		"stream-json", "--verbose")
	var kinds []string
	for _, e := range r.events() {
		kinds = append(kinds, e["type"].(string))
	}
	if got := strings.Join(kinds, " "); got != "system assistant assistant user assistant result" {
		t.Errorf("events %s", got)
	}
}

func TestClaudePrintsText(t *testing.T) {
	p := newPlace(t)
	if r := p.run(t, `[[text "plain"]]`, "claude", "-p"); r.out != "plain\n" {
		t.Errorf("text: %q", r.out)
	}
}

func TestClaudeRunsTools(t *testing.T) {
	p := newPlace(t)
	r := p.claude(t, `[[tool "echo out; exit 3"]][[tool "pwd"]][[write path=a.txt text="written"]]`,
		"--permission-mode", "acceptEdits")
	var results []event
	for _, e := range r.events() {
		if e["type"] == "user" {
			results = append(results, e["message"].(event)["content"].([]any)[0].(event))
		}
	}
	if len(results) != 3 || results[0]["content"] != "Exit code 3\nout" || results[0]["is_error"] != true ||
		results[1]["content"] != p.work || results[1]["is_error"] != false {
		t.Errorf("results %v", results)
	}
	if b, err := os.ReadFile(filepath.Join(p.work, "a.txt")); err != nil || string(b) != "written" {
		t.Errorf("file %q, %v", b, err)
	}
	if r.result() != "Done." {
		t.Errorf("result %q", r.result())
	}
}

func TestClaudePermissions(t *testing.T) {
	const bash, write = `[[ask "touch made"]][[text after]]`, `[[write path=made text=x]][[text after]]`
	tests := map[string]struct {
		prompt string
		args   []string
		runs   bool
	}{
		"what must be asked for is denied": {bash, nil, false},
		"writing must be asked for":        {write, nil, false},
		"accepted edits are no commands":   {bash, []string{"--permission-mode", "acceptEdits"}, false},
		"accepted edits":                   {write, []string{"--permission-mode", "acceptEdits"}, true},
		"bypass":                           {bash, []string{"--permission-mode", "bypassPermissions"}, true},
		"plan writes nothing":              {write, []string{"--permission-mode", "plan"}, false},
		"allowed by name":                  {bash, []string{"--allowedTools", "Edit,Bash(touch *)"}, true},
		"denied by name though nothing is asked": {`[[tool "touch made"]][[text after]]`,
			[]string{"--disallowedTools", "Bash"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			r := p.claude(t, tt.prompt, tt.args...)
			_, err := os.Stat(filepath.Join(p.work, "made"))
			denied := len(r.last("result")["permission_denials"].([]any)) > 0
			if (err == nil) != tt.runs || denied == tt.runs || r.result() != "after" {
				t.Errorf("ran %v, denied %v, result %q; stderr %q", err == nil, denied, r.result(), r.stderr)
			}
		})
	}
}

func TestClaudeSessions(t *testing.T) {
	p, id := newPlace(t), uuid.NewString()
	if r := p.claude(t, `I am Ann [[text ok]]`, "--session-id", id); r.last("result")["session_id"] != id {
		t.Fatalf("result %v", r.last("result"))
	}
	if r := p.claude(t, `[[history]]`, "--resume", id); r.result() != "1. I am Ann" ||
		r.last("result")["session_id"] != id {
		t.Errorf("resume: %v", r.last("result"))
	}
	forked := p.claude(t, `[[history]]`, "--resume", id, "--fork-session")
	if forked.last("result")["session_id"] == id || !strings.HasPrefix(forked.result(), "1. I am Ann") {
		t.Errorf("fork: %v", forked.last("result"))
	}
	if r := p.claude(t, `x`, "--session-id", id); r.status.ExitStatus() != 1 || r.out != "" ||
		r.stderr != "Error: Session ID "+id+" is already in use.\n" {
		t.Errorf("used id: %+v", r)
	}
	other := p
	other.work = t.TempDir()
	if r := other.claude(t, `x`, "--resume", id); !strings.Contains(r.stderr, "No conversation found") {
		t.Errorf("sessions belong to their directory: %+v", r)
	}
}

func TestClaudeRefusesCommandLines(t *testing.T) {
	tests := map[string]struct {
		args   []string
		stderr string
	}{
		"unknown flag": {[]string{"-p", "--no-such-flag"}, "error: unknown option '--no-such-flag'\n"},
		"a prompt with a dash": {[]string{"-p", "-starts with a dash"},
			"error: unknown option '-starts with a dash'\n"},
		"no verbose": {[]string{"-p", "--output-format", "stream-json"},
			"Error: When using --print, --output-format=stream-json requires --verbose\n"},
		"nothing to do": {[]string{"-p"}, "Error: Input must be provided either through stdin or as a prompt argument when using --print\n"},
		"not a session": {[]string{"-p", "--session-id", "x"},
			"Error: Invalid session ID. Must be a valid UUID.\n"},
		"prompt given twice": {[]string{"-p", "--system-prompt", "x", "--system-prompt-file", "/none"},
			"Error: Cannot use both --system-prompt and --system-prompt-file. Please use only one.\n"},
		"no prompt file": {[]string{"-p", "--append-system-prompt-file", "/none"},
			"Error: Append system prompt file not found: /none\n"},
		"variadic swallows": {[]string{"-p", "--add-dir", "/a", "the prompt"},
			"Error: Input must be provided either through stdin or as a prompt argument when using --print\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newPlace(t).run(t, "", append([]string{"claude"}, tt.args...)...)
			if r.status.ExitStatus() != 1 || r.stderr != tt.stderr || r.out != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := newPlace(t).run(t, "", "claude", "--version"); r.out != "2.1.197 (Claude Code)\n" {
		t.Errorf("version %q", r.out)
	}
	if r := newPlace(t).run(t, "", "claude", "-p", "--", "-x [[text dash]]"); r.out != "dash\n" {
		t.Errorf("after --: %q", r.out)
	}
}

func TestClaudeErrorsOfTheAPI(t *testing.T) {
	tests := map[string]struct {
		prompt  string
		status  any
		says    string
		retries int
		code    int
	}{
		"401 is retried": {`[[error 401 delay=1ms]]`, 401.0, "Invalid API key · Fix external API key", 3, 1},
		"400 is not":     {`[[error 400 message="odd"]]`, 400.0, "API Error: 400 odd", 0, 1},
		"429": {`[[error 429 delay=1ms]]`, 429.0,
			"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.", 3, 1},
		"529 gives up soon": {`[[error 529 delay=1ms]]`, nil,
			"API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment.", 2, 1},
		"an error wears off": {`[[error 500 times=2 delay=1ms]][[text fine]]`, nil, "fine", 2, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.env = append(p.env, "CLAUDE_CODE_MAX_RETRIES=3")
			r := p.claude(t, tt.prompt)
			retries := 0
			for _, e := range r.events() {
				if e["subtype"] == "api_retry" {
					retries++
				}
			}
			result := r.last("result")
			if result["result"] != tt.says || result["api_error_status"] != tt.status ||
				result["is_error"] != (tt.code == 1) ||
				result["subtype"] != "success" || retries != tt.retries || r.status.ExitStatus() != tt.code {
				t.Errorf("%d retries, status %v, result %v", retries, r.status, result)
			}
		})
	}
}

func TestClaudeLimitsOfATurn(t *testing.T) {
	p := newPlace(t)
	r := p.claude(t, `[[tool "echo 1"]][[tool "echo 2"]][[text never]]`, "--max-turns", "2")
	if got := r.last("result"); got["subtype"] != "error_max_turns" ||
		got["errors"].([]any)[0] != "Reached maximum number of turns (2)" {
		t.Errorf("%v", got)
	}
	r = p.claude(t, `[[tool "echo 1"]][[text never]]`, "--max-budget-usd", "0.001")
	if got := r.last("result"); got["subtype"] != "error_max_budget_usd" || r.status.ExitStatus() != 1 {
		t.Errorf("%v", got)
	}
}

func TestClaudeGivesTextUpAndRepeatsItInAnotherMessage(t *testing.T) {
	r := newPlace(t).claude(t, `[[retry-text "half of"]][[text "the whole"]]`)
	var ids []string
	for _, e := range r.events() {
		switch e["type"] {
		case "stream_event":
			if m, ok := e["event"].(event)["message"].(event); ok {
				ids = append(ids, m["id"].(string))
			}
		case "assistant":
			ids = append(ids, e["message"].(event)["id"].(string))
		}
	}
	if len(ids) != 2 || ids[0] == ids[1] || r.result() != "the whole" {
		t.Errorf("messages %v, result %q", ids, r.result())
	}
}

func TestClaudeSlashCommands(t *testing.T) {
	p := newPlace(t)
	if r := p.claude(t, "/nonexistent x"); r.result() != "Unknown command: /nonexistent" {
		t.Errorf("%q", r.result())
	}
	if r := p.claude(t, ` /nonexistent [[text "a leading space"]]`); r.result() != "Unknown command: /nonexistent" {
		t.Errorf("one-shot input is trimmed: %q", r.result())
	}
	l := p.startClaude(t)
	l.say(` /nonexistent [[text "a leading space"]]`)
	if got := l.until("result")["result"]; got != "a leading space" {
		t.Errorf("live input is not: %q", got)
	}
}

func TestClaudeSignals(t *testing.T) {
	p := newPlace(t)
	t.Run("SIGINT in text ends with a result and 0", func(t *testing.T) {
		l := p.start(t, "claude", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
			`[[text "abc" chunk=1]][[hang]]`)
		l.in.Close()
		l.until("stream_event")
		l.signal(syscall.SIGINT)
		r := l.wait()
		if got := r.last("result"); got["terminal_reason"] != "aborted_streaming" ||
			got["subtype"] != "error_during_execution" || r.status.ExitStatus() != 0 {
			t.Errorf("%v, status %v", got, r.status)
		}
	})
	t.Run("SIGINT in a tool kills it and ends with 1", func(t *testing.T) {
		l := p.start(t, "claude", "-p", "--output-format", "stream-json", "--verbose",
			`[[tool "touch running1; exec `+ownSleep()+`"]]`)
		l.in.Close()
		eventually(t, "the tool runs", func() bool { return exists(p, "running1") })
		l.signal(syscall.SIGINT)
		r := l.wait()
		if got := r.last("result"); got["terminal_reason"] != "aborted_tools" || r.status.ExitStatus() != 1 {
			t.Errorf("%v, status %v", got, r.status)
		}
		if processes(t, ownSleep()) != 0 {
			t.Error("the tool lives on")
		}
	})
	t.Run("SIGTERM ends at once with 143 and leaves the tool", func(t *testing.T) {
		l := p.start(t, "claude", "-p", "--output-format", "stream-json", "--verbose",
			`[[tool "touch running2; exec `+ownSleep()+`"]]`)
		l.in.Close()
		eventually(t, "the tool runs", func() bool {
			return exists(p, "running2") && processes(t, ownSleep()) == 1
		})
		l.signal(syscall.SIGTERM)
		r := l.wait()
		if r.status.ExitStatus() != 143 || strings.Contains(r.out, `"type":"result"`) {
			t.Errorf("status %v, out %q", r.status, r.out)
		}
		if kill(t, ownSleep()) != 1 {
			t.Error("the tool died, which the real one does not")
		}
	})
	t.Run("a session killed in mid turn can be resumed", func(t *testing.T) {
		id := uuid.NewString()
		l := p.startClaude(t, "--session-id", id)
		l.say("remember me [[text abc]][[hang]]")
		l.until("stream_event")
		l.signal(syscall.SIGKILL)
		l.wait()
		if r := p.claude(t, `[[history]]`, "--resume", id); r.result() != "1. remember me" {
			t.Errorf("%q", r.result())
		}
	})
}

func TestBrokenAgents(t *testing.T) {
	p := newPlace(t)
	t.Run("crash", func(t *testing.T) {
		r := p.claude(t, `[[text "abc"]][[crash code=3 stderr="segfault"]]`)
		if r.status.ExitStatus() != 3 || r.stderr != "segfault\n" || strings.Contains(r.out, `"type":"result"`) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("silent", func(t *testing.T) {
		if r := p.claude(t, `[[silent]]`); r.status.ExitStatus() != 0 || strings.Contains(r.out, `"type":"result"`) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("drop leaves half a line", func(t *testing.T) {
		if r := p.claude(t, `[[text "abc"]][[drop]]`); r.status.ExitStatus() != 1 || strings.HasSuffix(r.out, "\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("garbage is followed by the rest", func(t *testing.T) {
		r := p.claude(t, `[[garbage bytes=300]][[text "after"]]`)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if !strings.Contains(lines[len(lines)-1], `"result":"after"`) || strings.Count(r.out, "\x81") == 0 {
			t.Errorf("%q", r.out)
		}
	})
	t.Run("longline", func(t *testing.T) {
		if r := p.claude(t, `[[longline bytes=300000]][[text "after"]]`); r.result() != "after" || len(r.out) < 300000 {
			t.Errorf("%d bytes, result %q", len(r.out), r.result())
		}
	})
	t.Run("endlessline", func(t *testing.T) {
		l := p.start(t, "claude", "-p", `[[endlessline]]`)
		l.in.Close()
		buf := make([]byte, 1<<20)
		for read := 0; read < 2<<20; {
			n, err := l.out.Read(buf)
			if err != nil || strings.Contains(string(buf[:n]), "\n") {
				t.Fatalf("the line ended after %d bytes: %v", read+n, err)
			}
			read += n
		}
		l.signal(syscall.SIGKILL)
		l.wait()
	})
	t.Run("ignore-term", func(t *testing.T) {
		l := p.start(t, "claude", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
			`[[ignore-term]][[text "deaf"]][[sleep 300ms]]`)
		l.in.Close()
		l.until("stream_event")
		l.signal(syscall.SIGTERM)
		if r := l.wait(); r.result() != "deaf" || r.status.ExitStatus() != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("hold-pipe", func(t *testing.T) {
		l := p.start(t, "claude", "-p", "--output-format", "stream-json", "--verbose",
			`[[hold-pipe for=`+ownSeconds()+`s]][[text "x"]]`)
		l.in.Close()
		l.until("result")
		eventually(t, "the agent ends", func() bool { return stopped(l.cmd.Process.Pid) })
		// A process that has just begun its program has no command line for a moment.
		eventually(t, "a process holds the pipe", func() bool { return processes(t, ownSleep()) == 1 })
		kill(t, ownSleep())
		l.wait()
	})
}

func exists(p place, name string) bool {
	_, err := os.Stat(filepath.Join(p.work, name))
	return err == nil
}

// stopped reports whether a child has ended, even if no process has reaped it.
func stopped(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// processes counts processes by their command line.
func processes(t *testing.T, cmdline string) int {
	t.Helper()
	return len(pids(t, cmdline))
}

// kill ends processes by their command line and returns their number.
func kill(t *testing.T, cmdline string) int {
	t.Helper()
	all := pids(t, cmdline)
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("kill %d: %v", pid, err)
		}
	}
	eventually(t, "the processes are gone", func() bool { return processes(t, cmdline) == 0 })
	return len(all)
}

func TestClaudePromptInTheArgumentsDoesNotWaitForEver(t *testing.T) {
	home := t.TempDir()
	// The runtime's own signal goroutine must not be started inside the bubble.
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGUSR1)
	defer signal.Stop(ch)
	synctest.Test(t, func(t *testing.T) {
		stdin, open := io.Pipe()
		defer open.Close()
		var out, stderr bytes.Buffer
		start := time.Now()
		code := agent.Main([]string{"claude", "-p", "[[text ok]]"}, stdin, &out, &stderr,
			[]string{"DUCTOR_SIM_HOME=" + home})
		if code != 0 || out.String() != "ok\n" || !strings.Contains(stderr.String(), "no stdin data received in 3s") {
			t.Errorf("code %d, out %q, stderr %q", code, &out, &stderr)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
