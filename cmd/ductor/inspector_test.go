package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/bot/render"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/testprogram"
	"ductor/lang"
)

// foreign is an MCP client that knows nothing of ductor.
type foreign struct {
	*town
	program string
	env     []string // -e NAME=value
}

// run runs the client with the environment of an agent.
func (f foreign) run(token string, args ...string) (string, error) {
	f.t.Helper()
	ductor, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	line := slices.Concat([]string{"--cli"}, f.env, []string{"-e", "DUCTOR_MCP_TOKEN=" + token, ductor, "mcp"}, args)
	cmd := exec.CommandContext(ctx, f.program, line...)
	cmd.Env = append(os.Environ(), "HOME="+f.t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A foreign client lists the tools and calls each of them during a turn. With a forged token it gets nothing.
func TestTheInspectorCallsEveryTool(t *testing.T) {
	program := realagent.Npm(t, "mcp-inspector")
	town := surroundings(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.start()
	work := town.cfg.Projects.DefaultDir
	if err := os.WriteFile(filepath.Join(work, "report.txt"), []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	town.say(
		`[[tool cmd="printenv DUCTOR_MCP_TOKEN > token.new; mv token.new token; until [ -e go ]; do sleep 0.05; done"]] [[text "that was all"]]`)
	awaitFile(t, filepath.Join(work, "token"))
	raw, err := os.ReadFile(filepath.Join(work, "token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(raw))
	f := foreign{town, program, []string{"-e", "DUCTOR_MCP_DIR=" + town.cfg.Storage.Dir}}
	f.listsAndCalls(token, nil, "send_file", "ask_user")
	if out, err := f.run(token[:len(token)-6]+"AAAAAA", "--method", "tools/list"); err == nil ||
		!strings.Contains(out, "not valid") || strings.Contains(out, "send_message") {
		t.Errorf("with a forged token: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if m := town.awaitDone(1); strings.Contains(m.Text, token) {
		t.Error("the chat shows the token")
	}
	if out, _ := f.run(token, "--method", "tools/call", "--tool-name", "send_message", "--tool-arg",
		"text=too late"); !strings.Contains(out, "only while a turn") {
		t.Errorf("after the turn:\n%s", out)
	}
}

// listsAndCalls calls every listed tool. In short runs it only calls those in short, because each call starts the client,
// which takes seconds of CPU time. Each tool has a name for users. want replaces parts of the expected results.
func (f foreign) listsAndCalls(token string, want map[string]string, short ...string) {
	f.t.Helper()
	out, err := f.run(token, "--method", "tools/list")
	var listed struct {
		Tools []struct{ Name string }
	}
	// Complaints may follow the JSON.
	if err != nil || json.NewDecoder(strings.NewReader(out[max(strings.Index(out, "{"), 0):])).Decode(&listed) != nil {
		f.t.Fatalf("list: %v\n%s", err, out)
	}
	calls := map[string]struct{ args, press, want string }{
		"send_message":           {args: "text=hello from outside", want: "on its way"},
		"send_file":              {args: "path=report.txt", want: "on its way"},
		"ask_user":               {args: "question=Which?|options=[\"Blue\"]", press: "Blue", want: "Blue"},
		"schedule":               {args: "when=every day at 9:00|prompt=look", press: "✅ Allow once", want: "The job"},
		"list_sessions":          {want: "this session"},
		"describe_session":       {args: "session_id=none", want: "no such session"},
		"search_project_history": {args: "words=nothing", want: "none"},
		"count_project_tokens":   {want: "tokens in"},
		"consult_with":           {args: "model=claude|question=Why?", want: "session_id"},
		"work_with": {args: "agent=codex|task=[[text \"all done\"]]", press: "✅ Allow once",
			want: "all done"},
		"group_think": {args: "models=[\"claude\",\"codex\"]|question=Why?", want: "Conclusion"},
	}
	for _, tool := range listed.Tools {
		c, known := calls[tool.Name]
		if !known {
			f.t.Errorf("%s is not called here", tool.Name)
			continue
		}
		delete(calls, tool.Name)
		if other, differs := want[tool.Name]; differs {
			c.want = other
		}
		if name := render.ToolName(lang.Printer{}, "mcp__ductor__"+tool.Name); strings.HasPrefix(name, "mcp__") {
			f.t.Errorf("users read %q", name)
		}
		if !testprogram.Long() && !slices.Contains(short, tool.Name) {
			continue
		}
		args := []string{"--method", "tools/call", "--tool-name", tool.Name}
		for arg := range strings.SplitSeq(c.args, "|") {
			if arg != "" {
				args = append(args, "--tool-arg", arg)
			}
		}
		done := make(chan string, 1)
		go func() { out, _ := f.run(token, args...); done <- out }()
		if c.press != "" {
			f.pressOn(f.awaitButton(c.press), c.press)
			f.awaitNoButton(c.press) // the next call has another card
		}
		if out := <-done; !strings.Contains(out, c.want) {
			f.t.Errorf("%s gives\n%s", tool.Name, out)
		}
	}
	if len(calls) > 0 {
		f.t.Errorf("not listed: %v", calls)
	}
}

// An agent's shell sends a message and a file. If something cannot be sent, it gets the reason.
func TestAShellOfAnAgentSends(t *testing.T) {
	town := surroundings(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.start()
	ductor, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := town.cfg.Projects.DefaultDir
	if err := os.WriteFile(filepath.Join(work, "report.txt"), []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	town.say(
		`[[tool cmd="%[1]s send out of the shell && %[1]s send --file report.txt the report; %[1]s send --file /etc/shadow 2> refused"]] [[text "that was all"]]`, ductor)
	town.await("out of the shell")
	town.awaitDone(1)
	town.await("the report")
	if why, err := os.ReadFile(filepath.Join(work, "refused")); err != nil ||
		!strings.Contains(string(why), "/etc/shadow") {
		t.Errorf("a file outside of the roots: %q, %v", why, err)
	}
}
