package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/internal/sim/agent"
	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	agent.RunIfChild()
	testprogram.Guard()
	os.Exit(m.Run())
}

// place is where agents of one test run: their programs, home and working directory.
type place struct {
	programs agent.Programs
	work     string
	env      []string
}

func newPlace(t *testing.T) place {
	t.Helper()
	base := t.TempDir()
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := agent.Install(base)
	if err != nil {
		t.Fatal(err)
	}
	return place{p, work, []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "IS_SANDBOX=1",
		"GORACE=atexit_sleep_ms=0"}}
}

// run is the outcome of a process and its output.
type run struct {
	t      *testing.T
	out    string
	stderr string
	status syscall.WaitStatus
}

func (p place) command(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	path := map[string]string{agent.Claude: p.programs.Claude, agent.Codex: p.programs.Codex}[args[0]]
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.work, p.env, 5*time.Second
	return cmd
}

// run runs an agent to its end with prompt on standard input.
func (p place) run(t *testing.T, prompt string, args ...string) run {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := p.command(t, args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(prompt), &out, &stderr
	_ = cmd.Run() // how it ended is in the status
	return run{t, out.String(), stderr.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)}
}

// claude runs a one-shot stream of Claude.
func (p place) claude(t *testing.T, prompt string, more ...string) run {
	t.Helper()
	return p.run(t, prompt, append([]string{"claude", "-p", "--output-format", "stream-json", "--verbose",
		"--include-partial-messages"}, more...)...)
}

// codex runs `codex exec`.
func (p place) codex(t *testing.T, prompt string, more ...string) run {
	t.Helper()
	return p.run(t, prompt, append([]string{"codex", "exec", "--json", "--skip-git-repo-check"},
		append(more, "-")...)...)
}

type event = map[string]any

// events returns the lines printed, which must all be JSON.
func (r run) events() []event {
	r.t.Helper()
	var all []event
	for line := range strings.Lines(r.out) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatalf("no JSON: %.200q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// last returns the last event of a type.
func (r run) last(kind string) event {
	r.t.Helper()
	all := r.events()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i]["type"] == kind {
			return all[i]
		}
	}
	r.t.Fatalf("no %s; status %v, stderr %q, out %.500q", kind, r.status, r.stderr, r.out)
	return nil
}

// result returns the text of the result event.
func (r run) result() string {
	r.t.Helper()
	text, _ := r.last("result")["result"].(string)
	return text
}

// message returns the text of Codex's last message.
func (r run) message() string {
	r.t.Helper()
	text := ""
	for _, e := range r.events() {
		if item, ok := e["item"].(event); ok && item["type"] == "agent_message" {
			text = item["text"].(string)
		}
	}
	return text
}

// live is a process that is talked to.
type live struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	all   []event
	noise safeBuffer
}

func (p place) start(t *testing.T, args ...string) *live {
	t.Helper()
	l := &live{t: t, cmd: p.command(t, args)}
	l.cmd.Stderr = &l.noise
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.out = bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (p place) startClaude(t *testing.T, more ...string) *live {
	t.Helper()
	return p.start(t, append([]string{"claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json",
		"--verbose", "--include-partial-messages", "--permission-prompt-tool", "stdio"}, more...)...)
}

func (l *live) send(line string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, line+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) say(prompt string) {
	l.t.Helper()
	text, err := json.Marshal(prompt)
	if err != nil {
		l.t.Fatal(err)
	}
	l.send(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":` + string(text) + `}]}}`)
}

// until reads up to the next event of a type.
func (l *live) until(kind string) event {
	l.t.Helper()
	for {
		line, err := l.out.ReadBytes('\n')
		if err != nil {
			l.t.Fatalf("no %s: %v; stderr %q", kind, err, l.noise.String())
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			l.t.Fatalf("no JSON: %.200q", line)
		}
		l.all = append(l.all, e)
		if e["type"] == kind {
			return e
		}
	}
}

func (l *live) signal(s syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		l.t.Fatal(err)
	}
}

// wait reads the remaining output and waits for the end of the process.
func (l *live) wait() run {
	l.t.Helper()
	rest, err := io.ReadAll(l.out)
	if err != nil {
		l.t.Fatal(err)
	}
	_ = l.cmd.Wait() // how it ended is in the status
	return run{l.t, string(rest), l.noise.String(), l.cmd.ProcessState.Sys().(syscall.WaitStatus)}
}

// eventually waits until ok returns true. Its deadline is much longer than needed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

// safeBuffer is a buffer that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func stderrOf(l *live) string { return l.noise.String() }
