package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
)

// hostileDir returns a session's directory with paths through which an agent might try to leave it.
func hostileDir(t *testing.T) (req cli.Request, outside string) {
	t.Helper()
	base := t.TempDir()
	req = cli.Request{Dir: filepath.Join(base, "in"), AddDirs: []string{filepath.Join(base, "more")}, Prompt: "hi"}
	outside = filepath.Join(base, "out")
	for _, dir := range []string{req.Dir, req.AddDirs[0], outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(req.Dir, "a.txt"), "1\n2\n3\n4\n")
	put(filepath.Join(req.AddDirs[0], "b.txt"), "more")
	put(filepath.Join(outside, "secret"), "secret")
	for link, to := range map[string]string{"file": filepath.Join(outside, "secret"), "dir": outside, "up": "..", "inner": "a.txt"} {
		if err := os.Symlink(to, filepath.Join(req.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(req.Dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(req.Dir, "binary"), "\xff\xfe")
	return req, outside
}

// An agent can read files in the conversation's directories, and no others.
func TestReadingFiles(t *testing.T) {
	req, outside := hostileDir(t)
	provider, p := play(t, func(o *Options) { o.Protected = []string{filepath.Join(req.Dir, "own")} })
	if err := os.WriteFile(filepath.Join(req.Dir, "own"), []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, provider, req)
	for path, want := range map[string]string{
		req.Dir + "/own":                             "",
		req.Dir + "/a.txt":                           "1\n2\n3\n4\n",
		req.Dir + "/inner":                           "1\n2\n3\n4\n",
		req.Dir + "/../in/a.txt":                     "1\n2\n3\n4\n",
		req.AddDirs[0] + "/b.txt":                    "more",
		req.Dir + `/a.txt","line":2,"limit":2,"x":"`: "2\n3\n",
		req.Dir + `/a.txt","line":9,"x":"`:           "",
		req.Dir + "/missing":                         "",
		req.Dir + "/file":                            "",
		req.Dir + "/dir/secret":                      "",
		req.Dir + "/up/out/secret":                   "",
		req.Dir + "/../out/secret":                   "",
		outside + "/secret":                          "",
		"a.txt":                                      "",
		req.Dir + "/pipe":                            "",
		req.Dir:                                      "",
		req.Dir + "/binary":                          "",
		"/etc/passwd":                                "",
	} {
		p.say(`{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"%s"}}`, path)
		answer := p.hear("")
		var r readResult
		_ = json.Unmarshal(answer.Result, &r)
		if r.Content != want || (answer.Error != nil) != (want == "" && !strings.Contains(path, "line")) {
			t.Errorf("%s: %q, %v", path, r.Content, answer.Error)
		}
		if strings.HasSuffix(path, "missing") && (answer.Error.Code != codeNoFile || !strings.HasPrefix(answer.Error.Message, "Resource not found")) {
			t.Errorf("a missing file: %v", answer.Error)
		}
	}
}

// An agent can write there too, but nowhere in plan mode.
func TestWritingFiles(t *testing.T) {
	req, outside := hostileDir(t)
	provider, p := play(t, nil)
	s := open(t, provider, req)
	for path, allowed := range map[string]bool{
		req.Dir + "/new/deep.txt": true,
		req.Dir + "/a.txt":        true,
		req.Dir + "/file":         false,
		req.Dir + "/dir/new":      false,
		req.Dir + "/../out/new":   false,
		outside + "/new":          false,
		req.Dir + "/pipe":         false,
	} {
		p.say(`{"id":1,"method":"fs/write_text_file","params":{"sessionId":"s1","path":"%s","content":"written"}}`, path)
		if answer := p.hear(""); (answer.Error == nil) != allowed {
			t.Errorf("%s: %v", path, answer.Error)
		}
		if !allowed {
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "written" {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "secret" {
		t.Errorf("what lies outside holds %q, %v", got, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v", left)
	}
	s.Agent().(*session).workspace.allow(cli.Plan)
	for _, method := range []string{`fs/write_text_file","params":{"content":"x","path":"` + req.Dir + `/plan"`, `terminal/create","params":{"command":"true"`} {
		p.say(`{"id":1,"method":"%s,"sessionId":"s1"}}`, method)
		if answer := p.hear(""); answer.Error == nil {
			t.Errorf("%s went through in plan mode", method)
		}
	}
}

// Commands run in the conversation's directories, and end with the session at the latest.
func TestTerminals(t *testing.T) {
	p, dir := scripted(t, nil)
	s := open(t, p, cli.Request{Dir: dir})
	ctx, w := t.Context(), s.Agent().(*session).workspace
	create := func(params string) (string, error) {
		made, err := serving((*workspace).createTerminal)(ctx, w, json.RawMessage(params))
		if err != nil {
			return "", err
		}
		return made.(terminalParams).ID, nil
	}
	id, err := create(`{"command":"sh","args":["-c","pwd; echo wrong >&2; exit 3"]}`)
	if err != nil {
		t.Fatal(err)
	}
	it := terminalParams{id}
	if exit, err := onTerminal((*terminal).wait)(w, ctx, it); err != nil || *exit.(*exitStatus).Code != 3 {
		t.Errorf("ended %+v, %v", exit, err)
	}
	if out, err := onTerminal((*terminal).said)(w, ctx, it); err != nil || !strings.Contains(out.(outputResult).Output, "wrong") ||
		!strings.Contains(out.(outputResult).Output, filepath.Base(dir)) {
		t.Errorf("said %+v, %v", out, err)
	}
	if _, err := w.releaseTerminal(ctx, it); err != nil {
		t.Error(err)
	}
	if _, err := onTerminal((*terminal).said)(w, ctx, it); err == nil {
		t.Error("a terminal that was released is there")
	}
	if _, err := create(`{"command":"true","cwd":"/"}`); err == nil {
		t.Error("a command ran outside")
	}
	long, err := create(`{"command":"sh","args":["-c","yes"],"outputByteLimit":1000}`)
	if err != nil {
		t.Fatal(err)
	}
	it = terminalParams{long}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		out, err := onTerminal((*terminal).said)(w, ctx, it)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", out, err)
		}
		if o := out.(outputResult); o.Truncated && len(o.Output) <= 1000 && o.Exit == nil {
			break
		}
	}
	if _, err := onTerminal((*terminal).kill)(w, ctx, it); err != nil {
		t.Error(err)
	}
	if _, err := create(`{"command":"sleep","args":["300"]}`); err != nil { // Close ends it, or the Host reports it
		t.Fatal(err)
	}
}
