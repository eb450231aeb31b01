package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/internal/testprogram"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

// tokens runs `ductor mcp token`.
func (town *town) tokens(config string, args ...string) (out string, err error) {
	town.t.Helper()
	line := append([]string{"mcp", "token", "-c", config}, args...)
	cmd := exec.CommandContext(town.soon(), clitest.Program(town.t), line...)
	cmd.Env = append(os.Environ(), beDuctor+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(raw) + stderr.String(), err
}

// grant creates a token and returns it.
func (town *town) grant(name string) string {
	town.t.Helper()
	token, err := relay.CreateGrant(town.cfg.Storage.Dir, relay.Grant{Name: name}, time.Now())
	if err != nil {
		town.t.Fatal(err)
	}
	return token
}

// mcpClient is an MCP client that speaks with `ductor mcp`.
type mcpClient struct {
	town *town
	in   io.Writer
	out  *bufio.Scanner
	n    int
}

// connectOutside starts `ductor mcp` with a token, as an MCP client does.
func (town *town) connectOutside(token string) *mcpClient {
	town.t.Helper()
	cmd := exec.CommandContext(town.soon(), clitest.Program(town.t), "mcp")
	cmd.Env = append(os.Environ(), beDuctor+"=1", relay.TokenVar+"="+token, relay.DirVar+"="+town.cfg.Storage.Dir)
	cmd.Stderr = testWriter{town.t}
	in, err := cmd.StdinPipe()
	if err != nil {
		town.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		town.t.Fatal(err)
	}
	town.t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	c := &mcpClient{town: town, in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, relay.MaxLine)
	return c
}

func (c *mcpClient) send(message map[string]any) {
	c.town.t.Helper()
	message["jsonrpc"] = "2.0"
	raw, err := json.Marshal(message)
	if err == nil {
		_, err = c.in.Write(append(raw, '\n'))
	}
	if err != nil {
		c.town.t.Fatal(err)
	}
}

// request sends a request, and returns its result, or the message of its error.
func (c *mcpClient) request(method string, params any) (json.RawMessage, string) {
	c.town.t.Helper()
	c.n++
	c.send(map[string]any{"id": c.n, "method": method, "params": params})
	for c.out.Scan() {
		var got struct {
			ID     int
			Result json.RawMessage
			Error  struct{ Message string }
		}
		if err := json.Unmarshal(c.out.Bytes(), &got); err == nil && got.ID == c.n {
			return got.Result, got.Error.Message
		}
	}
	c.town.t.Errorf("%s: ductor mcp ended: %v", method, c.out.Err())
	return nil, "no answer"
}

// initialize introduces the client, and returns the error, or "".
func (c *mcpClient) initialize() string {
	c.town.t.Helper()
	_, why := c.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "desk", "version": "1"}})
	if why == "" {
		c.send(map[string]any{"method": "notifications/initialized"})
	}
	return why
}

// call calls a tool and returns its text or the error.
func (c *mcpClient) call(tool string, args map[string]any) string {
	c.town.t.Helper()
	result, why := c.request("tools/call", map[string]any{"name": tool, "arguments": args})
	var got struct{ Content []struct{ Text string } }
	if why == "" {
		if err := json.Unmarshal(result, &got); err != nil || len(got.Content) != 1 {
			c.town.t.Fatalf("%s: %v\n%s", tool, err, result)
		}
		why = got.Content[0].Text
	}
	return why
}

// An MCP client outside of turns uses every tool. The owner decides and answers in the private chat, which names the
// client, as the audit does. The client sees its own conversation only. It survives a restart of ductor.
func TestAnMCPClientOutsideOfTurnsUsesEveryTool(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	report := filepath.Join(town.cfg.Projects.DefaultDir, "report.txt")
	if err := os.WriteFile(report, []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	town.say(`[[text "a secret plan"]]`)
	town.awaitDone(1)
	c := town.connectOutside(town.grant("desktop"))
	if why := c.initialize(); why != "" {
		t.Fatal(why)
	}
	result, why := c.request("tools/list", nil)
	var listed struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &listed); err != nil || why != "" {
		t.Fatalf("list: %v %s", err, why)
	}
	calls := outsideCalls()
	for _, tool := range listed.Tools {
		one, known := calls[tool.Name]
		delete(calls, tool.Name)
		if !known {
			t.Errorf("%s is not called here", tool.Name)
			continue
		}
		done := make(chan string, 1)
		go func() { done <- c.call(tool.Name, one.args) }()
		if one.press != "" {
			m := town.awaitButton(one.press)
			if one.press == allowOnce && !strings.Contains(m.Text, "desktop") {
				t.Errorf("%s: the card names no client: %q", tool.Name, m.Text)
			}
			town.pressOn(m, one.press)
			town.awaitNoButton(one.press) // the next call has another card
		}
		if text := <-done; !strings.Contains(text, one.want) || strings.Contains(text, "secret plan") {
			t.Errorf("%s gives\n%s", tool.Name, text)
		}
	}
	if len(calls) > 0 {
		t.Errorf("not listed: %v", calls)
	}
	town.await("MCP desktop:\n\nhello from outside")
	c.call("consult_with", map[string]any{"model": "claude", "question": `[[text "because"]]`,
		"session_id": "auth-789"})
	if text := c.call("list_sessions", nil); !strings.Contains(text, "auth-789") {
		t.Errorf("its own sessions are\n%s", text)
	}
	asked := make(chan string, 1)
	go func() {
		asked <- c.call("ask_user", map[string]any{"question": "Still?", "options": []string{"Green"}})
	}()
	town.awaitButton("Green")
	town.leave()
	if text := <-asked; !strings.Contains(text, "ductor was restarted before it answered") {
		t.Errorf("the question that waited gives %s", text)
	}
	town.start()
	town.awaitNoButton("Green")
	if text := c.call("send_message", map[string]any{"text": "back again"}); !strings.Contains(text, "on its way") {
		t.Errorf("after a restart: %s", text)
	}
	town.await("MCP desktop:\n\nback again")
	town.checkOutsideAudit(len(listed.Tools) + 4)
}

const allowOnce = "✅ Allow once"

// outsideCall is a call of a tool from outside of turns.
type outsideCall struct {
	args        map[string]any
	press, want string
}

func outsideCalls() map[string]outsideCall {
	const because = `[[text "because"]]`
	return map[string]outsideCall{
		"send_message":           {map[string]any{"text": "hello from outside"}, "", "on its way"},
		"send_file":              {map[string]any{"path": "report.txt"}, "", "on its way"},
		"ask_user":               {map[string]any{"question": "Which?", "options": []string{"Blue"}}, "Blue", "Blue"},
		"schedule":               {map[string]any{"when": "every day at 9:00", "prompt": "look"}, allowOnce, "The job"},
		"list_sessions":          {nil, "", ""},
		"describe_session":       {map[string]any{"session_id": "none"}, "", "no such session"},
		"search_project_history": {map[string]any{"words": "secret", "everywhere": true}, "", "none"},
		"count_project_tokens":   {nil, "", "tokens in"},
		"consult_with":           {map[string]any{"model": "claude", "question": because}, "", "session_id"},
		"work_with": {map[string]any{"agent": "codex", "task": `[[text "all done"]]`}, allowOnce,
			"all done"},
		"group_think": {map[string]any{"models": []string{"claude", "codex"}, "question": because}, "", "Conclusion"},
	}
}

// checkOutsideAudit checks that the audit has n calls of the client desktop, all in its own conversation.
func (town *town) checkOutsideAudit(n int) {
	town.t.Helper()
	town.stop()
	db, err := store.OpenReadOnly(town.t.Context(), town.database(), store.Options{})
	if err != nil {
		town.t.Fatal(err)
	}
	defer db.Close()
	entries, err := db.AuditSince(town.t.Context(), time.Now().AddDate(0, 0, -1), 1000)
	if err != nil {
		town.t.Fatal(err)
	}
	for _, e := range entries {
		if e.What != orchestrator.AuditCalled {
			continue
		}
		n--
		if e.Agent != "MCP desktop" || e.Conversation != (orchestrator.ConversationID{Chat: owner, Topic: -1}) {
			town.t.Errorf("the audit has %+v", e)
		}
	}
	if n != 0 {
		town.t.Errorf("the audit misses %d calls", n)
	}
}

// An agent that works for a client outside of turns asks before it runs a command, also in a chat in bypass, and has
// no tools of ductor itself. An abort in the owner's chat ends what runs for the client.
func TestWorkForAClientOutsideOfTurnsAsks(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	c := town.connectOutside(town.grant("desktop"))
	if why := c.initialize(); why != "" {
		t.Fatal(why)
	}
	done := make(chan string, 1)
	go func() {
		done <- c.call("work_with", map[string]any{"agent": "claude",
			"task": `[[ask "touch asked"]] [[tool cmd="printenv DUCTOR_MCP_TOKEN > token; true"]] [[text "all done"]]`})
	}()
	first := town.awaitButton(allowOnce)
	if !strings.Contains(first.Text, "touch asked") || strings.Contains(first.Text, "this command") {
		t.Errorf("the task is not shown: %q", first.Text)
	}
	town.pressOn(first, allowOnce)
	second := town.awaitMessage(func(m telegram.Message) bool {
		return m.ID != first.ID && m.HasButton(allowOnce)
	})
	if !strings.Contains(second.Text, "For your MCP client desktop") || !strings.Contains(second.Text, "touch asked") ||
		second.HasButton("Allow pattern…") {
		t.Errorf("the command is not shown: %q", second.Text)
	}
	town.pressOn(second, "⛔ Deny")
	if text := <-done; !strings.Contains(text, "all done") {
		t.Errorf("the work gives %q", text)
	}
	if raw, err := os.ReadFile(filepath.Join(town.cfg.Projects.DefaultDir, "token")); err != nil || len(raw) > 0 {
		t.Errorf("it has the token %q, %v", raw, err)
	}
	eventually(t, "the work to end", func() bool { return len(town.agents()) == 0 })
	go func() {
		done <- c.call("consult_with", map[string]any{"model": "claude", "question": `[[start]] [[hang]]`})
	}()
	eventually(t, "the question to run", func() bool { return len(town.agents()) == 1 })
	town.say("/abort")
	if text := <-done; !strings.Contains(text, "abort") {
		t.Errorf("after an abort of the owner the question gives %q", text)
	}
}

// A token is shown once, and its client works in the project of the token. Its end ends the client at once.
func TestTokensOfMCPClients(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	project := filepath.Join(town.cfg.Projects.DefaultDir, "shop")
	if err := errors.Join(os.Mkdir(project, 0o700),
		os.WriteFile(filepath.Join(project, "a.txt"), []byte("some words"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := town.tokens(path, "desktop", "--project", "/"); err == nil ||
		!strings.Contains(err.Error(), "outside of projects.roots") {
		t.Errorf("a project outside: %v", err)
	}
	out, err := town.tokens(path, "desktop", "--project", project)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Fields(out)[0]
	if !strings.Contains(out, `"DUCTOR_MCP_TOKEN": "`+token+`"`) || !strings.Contains(out, "mcpServers") {
		t.Errorf("create prints %s", out)
	}
	if _, err := town.tokens(path, "create", "desktop"); err == nil ||
		!strings.Contains(err.Error(), "revoke it first") {
		t.Errorf("a second token of the name: %v", err)
	}
	if out, err := town.tokens(path, "list"); err != nil || !strings.Contains(out, "desktop") ||
		!strings.Contains(out, project) || strings.Contains(out, token) {
		t.Errorf("list: %v, %s", err, out)
	}
	town.start()
	c := town.connectOutside(token)
	if why := c.initialize(); why != "" {
		t.Fatal(why)
	}
	if text := c.call("count_project_tokens", nil); !strings.Contains(text, "in 1 files") {
		t.Errorf("it works elsewhere: %s", text)
	}
	asked := make(chan string, 1)
	go func() { asked <- c.call("ask_user", map[string]any{"question": "Which?", "options": []string{"Blue"}}) }()
	town.awaitButton("Blue")
	if _, err := town.tokens(path, "revoke", "desktop"); err != nil {
		t.Fatal(err)
	}
	if why := <-asked; !strings.Contains(why, "look whether the call had an effect") {
		t.Errorf("the call that waited gives %s", why)
	}
	town.awaitNoButton("Blue")
	if why := c.call("send_message", map[string]any{"text": "x"}); !strings.Contains(why, "not valid") {
		t.Errorf("after its end: %s", why)
	}
	if _, err := town.tokens(path, "revoke", "desktop"); err == nil ||
		!strings.Contains(err.Error(), "no token of this name") {
		t.Errorf("an unknown name: %v", err)
	}
	if why := town.connectOutside(town.grant("ide")[:40] + strings.Repeat("A", 25)).initialize(); !strings.Contains(why,
		"not valid") {
		t.Errorf("a forged token: %s", why)
	}
}

// The inspector, which knows nothing of ductor, lists the tools outside of turns and calls them.
func TestTheInspectorWorksOutsideOfTurns(t *testing.T) {
	program := realagent.Npm(t, "mcp-inspector")
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	report := filepath.Join(town.cfg.Projects.DefaultDir, "report.txt")
	if err := os.WriteFile(report, []byte("a report"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := town.grant("inspector")
	f := foreign{town, program, []string{"-e", "DUCTOR_MCP_DIR=" + town.cfg.Storage.Dir}}
	f.listsAndCalls(token, map[string]string{"list_sessions": ""}, "send_file")
	if !testprogram.Long() { // TestTokensOfMCPClients does the same with another client
		return
	}
	if err := relay.RevokeGrant(town.cfg.Storage.Dir, "inspector"); err != nil {
		t.Fatal(err)
	}
	if out, err := f.run(token, "--method", "tools/list"); err == nil || !strings.Contains(out, "not valid") {
		t.Errorf("with a revoked token: %v\n%s", err, out)
	}
}

// Another user of the machine gets the reason, and no tools.
func TestAnotherUserIsNoMCPClient(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	town := newTown(t, nil)
	cmd := exec.CommandContext(town.soon(), "/proc/self/exe", "mcp")
	cmd.Env = []string{beDuctor + "=1", relay.TokenVar + "=" + town.grant("desktop"),
		relay.DirVar + "=" + town.cfg.Storage.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "belongs to another user") {
		t.Errorf("another user gets %v\n%s", err, out)
	}
}
