package workspace

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// workbench is a Workspace of a test.
type workbench struct {
	*Workspace
	t           *testing.T
	in, outside string // the working directory, and a directory that the agent may not use
	ended       chan cli.ToolEnded
}

// newWorkbench returns a Workspace whose directories have paths through which an agent might try to leave them.
func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	base := t.TempDir()
	b := &workbench{t: t, in: filepath.Join(base, "in"), outside: filepath.Join(base, "out"),
		ended: make(chan cli.ToolEnded, 8)}
	more := filepath.Join(base, "more")
	for _, dir := range []string{b.in, more, b.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		b.in + "/a.txt": "1\n2\n3\n4\n", b.in + "/binary": "\xff\xfe", b.in + "/own": "token",
		more + "/b.txt": "more", b.outside + "/secret": "secret",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"file": b.outside + "/secret", "dir": b.outside, "up": "..", "inner": "a.txt",
	} {
		if err := os.Symlink(to, filepath.Join(b.in, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(b.in, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Workspace = New(Options{Launcher: clitest.Host(t), Dirs: []string{b.in, more}, Mode: cli.Ask,
		Protected: []string{b.in + "/own"}, Ended: func(_ string, end cli.ToolEnded) { b.ended <- end }})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// serve serves a request whose parameters are pairs of a name and a value.
func (b *workbench) serve(method string, params ...any) (any, error) {
	b.t.Helper()
	all := make(map[string]any)
	for i := 0; i < len(params); i += 2 {
		all[params[i].(string)] = params[i+1]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.Serve(b.t.Context(), method, raw)
}

// An agent can read files in the session's directories, and no others.
func TestReadingFiles(t *testing.T) {
	b := newWorkbench(t)
	for path, want := range map[string]string{
		"in/a.txt": "1\n2\n3\n4\n", "in/inner": "1\n2\n3\n4\n", "in/../in/a.txt": "1\n2\n3\n4\n", "more/b.txt": "more",
		"in/own": "", "in/missing": "", "in/file": "", "in/dir/secret": "", "in/up/out/secret": "",
		"in/../out/secret": "", "out/secret": "", "in/pipe": "", "in": "", "in/binary": "",
	} {
		got, err := b.serve(MethodRead, "path", filepath.Dir(b.in)+"/"+path)
		if r, _ := got.(ReadResult); r.Content != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", path, r.Content, err)
		}
	}
	for _, path := range []string{"a.txt", "/etc/passwd", ""} {
		if got, err := b.serve(MethodRead, "path", path); err == nil {
			t.Errorf("%q: %v", path, got)
		}
	}
	for want, line := range map[string]int{"2\n3\n": 2, "": 9} {
		got, err := b.serve(MethodRead, "path", b.in+"/a.txt", "line", line, "limit", 2)
		if got != (ReadResult{want}) {
			t.Errorf("two lines from line %d: %v, %v", line, got, err)
		}
	}
	_, err := b.serve(MethodRead, "path", b.in+"/missing")
	if refused, ok := errors.AsType[*rpc.Error](err); !ok || refused.Code != codeNoFile ||
		!strings.HasPrefix(refused.Message, "Resource not found") {
		t.Errorf("a missing file: %v", err)
	}
}

// An agent can write there too, but nowhere in plan mode.
func TestWritingFiles(t *testing.T) {
	b := newWorkbench(t)
	for path, allowed := range map[string]bool{
		"in/new/deep.txt": true, "in/a.txt": true, "in/file": false, "in/dir/new": false, "in/../out/new": false,
		"out/new": false, "in/pipe": false, "in/own": false,
	} {
		path = filepath.Dir(b.in) + "/" + path
		if _, err := b.serve(MethodWrite, "path", path, "content", "written"); (err == nil) != allowed {
			t.Errorf("%s: %v", path, err)
		}
		if !allowed {
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "written" {
			t.Errorf("%s contains %q, %v", path, got, err)
		}
	}
	if got, err := os.ReadFile(b.outside + "/secret"); err != nil || string(got) != "secret" {
		t.Errorf("the file outside contains %q, %v", got, err)
	}
	if left, err := os.ReadDir(b.outside); err != nil || len(left) != 1 {
		t.Errorf("the directory outside contains %v, %v", left, err)
	}
	made, err := b.serve(MethodWrite, "path", b.in+"/a.txt", "content", "again")
	want := WriteResult{cli.FileChanged{
		Path: "a.txt", Kind: cli.FileUpdated,
		Diff: "@@ -1 +1 @@\n-written\n+again\n",
	}}
	if made != want || err != nil {
		t.Errorf("a write returns %+v, %v, want %+v", made, err, want)
	}
	b.SetMode(cli.Plan)
	for method, params := range map[string][]any{
		MethodWrite: {"path", b.in + "/plan", "content", "x"}, MethodRun: {"command", "true"},
	} {
		if _, err := b.serve(method, params...); err == nil {
			t.Errorf("%s succeeds in plan mode", method)
		}
	}
}

// Commands run in the session's directories, and end with the workspace at the latest.
func TestCommands(t *testing.T) {
	b := newWorkbench(t)
	run := func(line string, more ...any) (terminal []any) {
		t.Helper()
		params := append([]any{"command", "sh", "args", []string{"-c", line}}, more...)
		made, err := b.serve(MethodRun, params...)
		if err != nil {
			t.Fatal(err)
		}
		return []any{"terminalId", made.(RunResult).Terminal}
	}
	it := run("pwd; echo wrong >&2; exit 3")
	if exit, err := b.serve("terminal/wait_for_exit", it...); err != nil || *exit.(*exitStatus).Code != 3 {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
	if end := <-b.ended; *end.ExitCode != 3 || end.Output != b.in+"\nwrong\n" {
		t.Errorf("the end is %+v", end)
	}
	if out, err := b.serve("terminal/output", it...); err != nil || out.(outputResult).Output != b.in+"\nwrong\n" {
		t.Errorf("the output is %+v, %v", out, err)
	}
	if _, err := b.serve("terminal/release", it...); err != nil {
		t.Error(err)
	}
	if _, err := b.serve("terminal/output", it...); err == nil {
		t.Error("a released terminal still exists")
	}
	if _, err := b.serve(MethodRun, "command", "true", "cwd", "/"); err == nil {
		t.Error("a command ran outside of the directories")
	}
	it = run("yes", "outputByteLimit", 1000)
	for {
		out, err := b.serve("terminal/output", it...)
		if err != nil {
			t.Fatal(err)
		}
		if o := out.(outputResult); o.Truncated && len(o.Output) <= 1000 && o.Exit == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := b.serve("terminal/kill", it...); err != nil {
		t.Error(err)
	}
	run("sleep 300") // Close stops it; otherwise clitest.Host reports it
}

// A request that cannot be read, or names an unknown terminal, is refused with the code for bad parameters.
func TestBadRequests(t *testing.T) {
	b := newWorkbench(t)
	for method := range services() {
		bad := []string{"", "[]"}
		if strings.HasPrefix(method, "terminal/") && method != MethodRun {
			bad = append(bad, `{"terminalId":"term-9"}`)
		}
		for _, params := range bad {
			_, err := b.Serve(t.Context(), method, json.RawMessage(params))
			if refused, ok := errors.AsType[*rpc.Error](err); !ok || refused.Code != rpc.CodeBadParams {
				t.Errorf("%s with %q: %v", method, params, err)
			}
		}
	}
}
