package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/acp/workspace"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
)

// update sends an update of the session s1. fields are the members after sessionUpdate.
func (p *peer) update(kind, fields string) {
	p.say(`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":%q,%s}}}`, kind, fields)
}

// playTurn opens a session and starts a turn in it. prompt is the agent's request.
func playTurn(t *testing.T, change func(*cli.Request)) (s live, p *peer, turn *playedTurn, prompt rpc.Message) {
	t.Helper()
	provider, p := play(t, nil)
	req := wish(t, "hi")
	if change != nil {
		change(&req)
	}
	s = open(t, provider, req)
	turn = begin(t, s, req)
	return s, p, turn, p.hear(methodPrompt)
}

// An update replaces title, kind, input, locations and content of a tool, in whatever order they come.
func TestAnUpdateReplacesATool(t *testing.T) {
	_, p, turn, prompt := playTurn(t, nil)
	p.update(updateTool, `"toolCallId":"c","title":"bash","status":"in_progress"`)
	if line := until[cli.ToolStarted](turn); line.Name != "tool" || line.Title != "bash" {
		t.Errorf("it begins as %+v", line)
	}
	p.update(updateToolNow, `"toolCallId":"c","kind":"execute","rawInput":{"command":"make"}`)
	if line := until[cli.ToolChanged](turn); line.Name != toolcall.KindRun || line.Title != "make" ||
		line.WholeTitle() != "make" || line.ID != "c" {
		t.Errorf("it becomes %+v", line)
	}
	p.update(updateToolNow, `"toolCallId":"c","title":null,"kind":null,"locations":null,"content":null,`+
		`"rawInput":null,"status":"in_progress"`)
	p.update(updateToolNow, `"toolCallId":"c","kind":"read","title":"Read b","name":"cat",`+
		`"rawInput":{"path":"/x/b"},"locations":[{"path":"/x/b"}]`)
	if line := until[cli.ToolChanged](turn); line.Name != "cat" || line.Title != "/x/b" ||
		string(line.Input) != `{"path":"/x/b"}` {
		t.Errorf("it becomes %+v", line)
	}
	p.update(updateToolNow, `"toolCallId":"c","content":[{"type":"content","content":{"type":"text","text":"one"}}]`)
	p.update(updateToolNow, `"toolCallId":"c","status":"completed","content":[{"type":"content",`+
		`"content":{"type":"text","text":"two"}}]`)
	if end := until[cli.ToolEnded](turn); end.Output != "two" || end.Failed() {
		t.Errorf("it ends as %+v", end)
	}
	p.update(updateToolNow, `"toolCallId":"c","title":"too late","status":"failed"`)
	p.endTurn(prompt)
	for ev := range turn.events {
		if _, changed := ev.(cli.ToolChanged); changed {
			t.Errorf("a tool that has ended becomes %+v", ev)
		}
	}
}

// An open approval shows the last known state of its call. What was shown before can no longer be allowed.
func TestACallThatChangesWhileAUserDecides(t *testing.T) {
	s, p, turn, prompt := playTurn(t, nil)
	p.update(updateTool, `"toolCallId":"c","title":"Run","kind":"execute","status":"pending",`+
		`"rawInput":{"command":"ls"},"content":[]`)
	p.say(`{"id":5,"method":"session/request_permission","params":{"sessionId":"s1","more":"of it",` +
		`"options":[{"optionId":"yes","kind":"allow_once"}],"toolCall":{"toolCallId":"c"}}}`)
	first := until[cli.ApprovalAsked](turn)
	if first.Title != "ls" || first.Effect.Command != "ls" {
		t.Errorf("asked %+v", first)
	}
	p.update(updateToolNow, `"toolCallId":"c","status":"pending","rawOutput":{"output":"so far"}`)
	p.update(updateToolNow, `"toolCallId":"c","rawInput":{"command":"rm -rf x","sudo":"yes"},`+
		`"content":[{"type":"image","url":"seen"}]`)
	if gone := until[cli.ApprovalWithdrawn](turn); gone.ID != first.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	last := until[cli.ApprovalAsked](turn)
	shown := func(name, value string) bool {
		return slices.ContainsFunc(last.Fields, func(f cli.Field) bool { return f.Name == name && f.Value == value })
	}
	if last.ID == first.ID || last.Title != "rm -rf x" || !shown("sudo", "yes") || !shown("content[0].url",
		"seen") || !shown("more", "of it") ||
		slices.ContainsFunc(last.Fields, func(f cli.Field) bool { return f.Value == "ls" }) {
		t.Errorf("asked again %+v", last)
	}
	if err := s.Decide(t.Context(), first.ID, cli.Decision{Allow: true}); err == nil {
		t.Error("what was shown before was allowed")
	}
	if err := s.Decide(t.Context(), last.ID, cli.Decision{Allow: true}); err != nil {
		t.Error(err)
	}
	if answer := p.hear(""); string(answer.ID) != "5" || !strings.Contains(string(answer.Result), "yes") {
		t.Errorf("answered %s: %s", answer.ID, answer.Result)
	}
	p.endTurn(prompt)
}

// A call that turns into one which the mode forbids is denied, although a user was asked about it before.
func TestACallThatChangesIntoAForbiddenOne(t *testing.T) {
	_, p, turn, prompt := playTurn(t, func(r *cli.Request) { r.Permission = cli.Plan })
	p.ask(5, "s1", "look", "fetch")
	until[cli.ApprovalAsked](turn)
	p.update(updateToolNow, `"toolCallId":"look","kind":"execute","rawInput":{"command":"touch x"}`)
	if answer := p.hear(""); !strings.Contains(string(answer.Result), `"no"`) {
		t.Errorf("answered %s", answer.Result)
	}
	p.endTurn(prompt)
	if r := until[cli.Result](turn); len(r.Denials) != 1 || r.Denials[0].Title != "touch x" {
		t.Errorf("denials %+v", r.Denials)
	}
}

// Updates that no agent should send end no turn, and hide nothing of it.
func TestUpdatesThatNoAgentShouldSend(t *testing.T) {
	_, p, turn, prompt := playTurn(t, nil)
	big := strings.Repeat("x", 10<<20)
	for _, u := range [][2]string{
		{"an_unknown_kind", `"content":{"type":"text","text":"no"}`},
		{updateMessage, `"content":{"type":"hologram","data":"AAAA"}`},
		{updateMessage, "\"content\":{\"type\":\"text\",\"text\":\" bad \xff bytes \"}"},
		{updatePlan, `"entries":"none"`},
		{updateMessage, `"messageId":7,"content":{"type":"text","text":"all the same"}`},
		{updateUsage, `"used":-1,"size":"many","cost":7`},
		{updateToolNow, `"toolCallId":"stray","status":"completed","title":"never announced","kind":"execute",` +
			`"rawOutput":{"odd":"out` + "\xfe" + `"}`},
		{updateToolNow, `"toolCallId":"big","status":"completed","title":"` + big + `","kind":"other",` +
			`"rawInput":{"a":"` + big + `"}`},
	} {
		p.update(u[0], u[1])
	}
	p.endTurn(prompt)
	var lines []string
	var r cli.Result
	for ev := range turn.events {
		switch ev := ev.(type) {
		case cli.ToolStarted:
			lines = append(lines, fmt.Sprint(ev.ID, " ", ev.Title[:min(len(ev.Title), 20)], " ", len(ev.Title) < 1000))
		case cli.ToolEnded:
			lines = append(lines, "end "+ev.Output)
		case cli.Result:
			r = ev
		}
	}
	if r.Err != nil || r.Text != "[hologram] bad \uFFFD bytes all the same" {
		t.Errorf("the answer is %q, %v", r.Text, r.Err)
	}
	if want := []string{"stray never announced true", "end {\"odd\":\"out\uFFFD\"}",
		"big " + big[:20] + " true", "end "}; !slices.Equal(lines, want) {
		t.Errorf("the tools are %q, want %q", lines, want)
	}
}

// The cost of a turn is the part by which the agent's total grows in it, also if its process was started anew.
func TestTheCostOfATurn(t *testing.T) {
	provider, p := play(t, nil)
	req := wish(t, "hi")
	s := open(t, provider, req)
	resume := func() live {
		clitest.Close(t, s)
		opened := make(chan live, 1)
		go func() {
			req := req
			req.Resume = "s1"
			s, err := provider.Open(t.Context(), cli.Live, req)
			if err != nil {
				t.Error(err)
				close(opened)
				return
			}
			opened <- s.(live)
		}()
		p.say(`{"id":%s,"result":{}}`, p.hear(methodLoad).ID)
		s, ok := <-opened
		if !ok {
			t.FailNow()
		}
		t.Cleanup(func() { clitest.Close(t, s) })
		return s
	}
	for i, c := range []struct {
		updates []string
		want    float64
	}{
		{[]string{`"amount":0.25,"currency":"USD"`, `"amount":0.5,"currency":"USD"`}, 0.5},
		{[]string{`"amount":0.75,"currency":"USD"`, `"amount":9,"currency":"credits"`}, 0.25},
		{nil, 0},
		{[]string{`"amount":1,"currency":"USD"`}, 0.25}, // of a resumed session
	} {
		if i == 3 {
			s = resume()
		}
		req.Turn = cli.TurnID(fmt.Sprint("cost-", i))
		turn := begin(t, s, req)
		prompt := p.hear(methodPrompt)
		for _, cost := range c.updates {
			p.update(updateUsage, `"used":10,"size":100,"cost":{`+cost+`}`)
		}
		p.endTurn(prompt)
		if r := until[cli.Result](turn); r.Consumed.CostUSD != c.want || c.updates != nil && (r.Fill.Used != 10 ||
			r.Fill.Limit != 100) {
			t.Errorf("turn %d costs %v, fill %+v", i, r.Consumed.CostUSD, r.Fill)
		}
	}
}

// servedTurn is a turn whose agent asks ductor for files and commands.
type servedTurn struct {
	t      *testing.T
	turn   *playedTurn
	p      *peer
	prompt rpc.Message
	file   string // contains the line "one"
	ids    int
}

func playServed(t *testing.T) *servedTurn {
	t.Helper()
	provider, p := play(t, func(o *Options) { o.Launcher = split{o.Launcher, clitest.Host(t)} })
	req := wish(t, "hi")
	s := &servedTurn{t: t, p: p, file: filepath.Join(req.Dir, "a.txt")}
	if err := os.WriteFile(s.file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.turn = begin(t, open(t, provider, req), req)
	s.prompt = p.hear(methodPrompt)
	return s
}

// call sends a request and returns ductor's answer. FILE in params is the file.
func (s *servedTurn) call(method, params string) rpc.Message {
	s.t.Helper()
	s.ids++
	params = strings.ReplaceAll(params, "FILE", s.file)
	s.p.say(`{"id":%d,"method":%q,"params":{"sessionId":"s1",%s}}`, s.ids, method, params)
	return s.p.hear("")
}

// run runs a command to its end and returns its terminal.
func (s *servedTurn) run(params string) (terminal string) {
	s.t.Helper()
	var made workspace.RunResult
	if answer := s.call(workspace.MethodRun, params); json.Unmarshal(answer.Result, &made) != nil {
		s.t.Fatalf("a command: %s, %+v", answer.Result, answer.Error)
	}
	s.call("terminal/wait_for_exit", fmt.Sprintf(`"terminalId":%q`, made.Terminal))
	return made.Terminal
}

// step checks the next line and its end. code is the exit code of a command.
func (s *servedTurn) step(name, title, output, err string, code int) {
	s.t.Helper()
	begun, ended := until[cli.ToolStarted](s.turn), until[cli.ToolEnded](s.turn)
	if begun.Name != name || begun.WholeTitle() != title || ended.ID != begun.ID || ended.Output != output {
		s.t.Errorf("the step is %+v, %+v", begun, ended)
	}
	if !strings.Contains(ended.Err, err) || (err == "") != (ended.Err == "") {
		s.t.Errorf("it ends as %+v", ended)
	}
	if name == toolcall.KindRun && (ended.ExitCode == nil || *ended.ExitCode != code) {
		s.t.Errorf("it exits as %+v", ended)
	}
}

func (s *servedTurn) change(path string, kind cli.ChangeKind, diff string) {
	s.t.Helper()
	if c := until[cli.FileChanged](s.turn); c != (cli.FileChanged{Path: path, Kind: kind, Diff: diff}) {
		s.t.Errorf("the change is %+v", c)
	}
}

func (s *servedTurn) end() {
	s.t.Helper()
	s.p.endTurn(s.prompt)
	if r := until[cli.Result](s.turn); r.Err != nil {
		s.t.Error(r.Err)
	}
}

// Files and commands that ductor serves are steps of the turn, with their diff, output and exit code.
func TestWhatDuctorServesIsAStep(t *testing.T) {
	s := playServed(t)
	s.call(workspace.MethodRead, `"path":"FILE"`)
	s.step("read", "a.txt", "one\n", "", 0)
	s.call(workspace.MethodRead, `"path":"/etc/passwd"`)
	s.step("read", "/etc/passwd", "", "outside", 0)
	s.call(workspace.MethodWrite, `"path":"FILE","content":"two\n"`)
	if line := until[cli.ToolStarted](s.turn); line.Name != "write" || line.Title != "a.txt" {
		t.Errorf("the line of a write is %+v", line)
	}
	s.change("a.txt", cli.FileUpdated, "@@ -1 +1 @@\n-one\n+two\n")
	s.call(workspace.MethodWrite, `"path":"FILE2","content":"new\n"`)
	s.change("a.txt2", cli.FileAdded, "@@ -0,0 +1 @@\n+new\n")
	s.run(`"command":"sh","args":["-c","echo out; exit 3"]`)
	s.step(toolcall.KindRun, "echo out; exit 3", "out\n", "", 3)
	s.run(`"command":"echo","args":["-c","x"]`)
	s.step(toolcall.KindRun, "echo -c x", "-c x\n", "", 0)
	s.end()
}

// A step that belongs to a tool of the agent is a part of that tool, with what ductor knows of it.
func TestAServedStepBelongsToItsTool(t *testing.T) {
	s := playServed(t)
	s.p.update(updateTool, fmt.Sprintf(`"toolCallId":"e","title":"Edit","kind":"edit","status":"in_progress",`+
		`"locations":[{"path":%q}]`, s.file))
	s.call(workspace.MethodRead, `"path":"FILE"`)
	s.call(workspace.MethodWrite, `"path":"FILE","content":"three\n"`)
	s.p.update(updateToolNow, fmt.Sprintf(`"toolCallId":"e","status":"completed","content":[{"type":"diff",`+
		`"path":%q,"oldText":"lie","newText":"lies"}]`, s.file))
	if line := until[cli.ToolStarted](s.turn); line.ID != "e" {
		t.Errorf("the line is %+v", line)
	}
	s.change("a.txt", cli.FileUpdated, "@@ -1 +1 @@\n-one\n+three\n")
	if end := until[cli.ToolEnded](s.turn); end.ID != "e" {
		t.Errorf("the end is %+v", end)
	}
	run := func(id, command string) {
		s.p.update(updateTool, fmt.Sprintf(`"toolCallId":%q,"title":"Run","kind":"execute","status":"in_progress",`+
			`"rawInput":{"command":%q}`, id, command))
	}
	run("x", "echo in; exit 4")
	id := s.run(`"command":"/bin/sh","args":["-c","echo in; exit 4"]`)
	s.p.update(updateToolNow, fmt.Sprintf(`"toolCallId":"x","status":"completed","content":[{"type":"terminal",`+
		`"terminalId":%q}]`, id))
	s.step(toolcall.KindRun, "echo in; exit 4", "in\n", "", 4)
	// A command that is not the tool's has a line of its own, whatever the tool says.
	run("y", "true")
	until[cli.ToolStarted](s.turn)
	s.run(`"command":"sh","args":["-c","echo hidden; true"]`)
	s.step(toolcall.KindRun, "echo hidden; true", "hidden\n", "", 0)
	s.end()
}

// split starts the agent's commands on the host. The test plays the agent.
type split struct {
	cli.Launcher
	host cli.Launcher
}

func (s split) Start(ctx context.Context, c cli.Command) (cli.Process, error) {
	if c.Path == "/bin/sh" {
		return s.host.Start(ctx, c)
	}
	return s.Launcher.Start(ctx, c)
}

// A request that the agent cancels gets an answer at once; ductor cancels its own requests after their time.
func TestRequestsAreCancelledInBothDirections(t *testing.T) {
	provider, p := play(t, func(o *Options) { o.Launcher = split{o.Launcher, clitest.Host(t)} })
	req := wish(t, "hi")
	s := open(t, provider, req)
	turn := begin(t, s, req)
	prompt := p.hear(methodPrompt)
	p.say(`{"id":1,"method":"terminal/create","params":{"sessionId":"s1","command":"sleep","args":["300"]}}`)
	var made workspace.RunResult
	if err := json.Unmarshal(p.hear("").Result, &made); err != nil {
		t.Fatal(err)
	}
	p.say(`{"id":2,"method":"terminal/wait_for_exit","params":{"sessionId":"s1","terminalId":%q}}`, made.Terminal)
	p.say(`{"method":"$/cancel_request","params":{"requestId":2}}`)
	if answer := p.hear(""); string(answer.ID) != "2" || answer.Error == nil || answer.Error.Code != codeCancel {
		t.Errorf("answered %s: %s, %+v", answer.ID, answer.Result, answer.Error)
	}
	p.say(`{"method":"$/cancel_request","params":{}}`)
	p.say(`{"method":"$/cancel_request","params":[]}`)
	p.endTurn(prompt)
	if r := until[cli.Result](turn); r.Err != nil {
		t.Error(r.Err)
	}
	process := s.Agent().(*session).process
	impatient := *process.options()
	impatient.CallLimit = 50 * time.Millisecond
	process.opts.Store(&impatient)
	req.Turn, req.Model = "another", "other"
	begin(t, s, req)
	asked := p.hear(methodSetModel)
	var over overParams
	if gone := p.hear(methodCancelRequest); json.Unmarshal(gone.Params, &over) != nil ||
		rpc.Text(over.RequestID) != rpc.Text(asked.ID) {
		t.Errorf("cancelled %s, asked %s", gone.Params, asked.ID)
	}
}
