package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/internal/statesocket"
	"ductor/mcp"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

var home = orchestrator.ConversationID{Chat: 1}

// The environments of the agent that runs the turn of a world.
var (
	onHost = orchestrator.AgentEnv{Agent: "claude"}
	inBox  = orchestrator.AgentEnv{Agent: "claude", Sandbox: "box"}
)

// world is the fake environment of the tools.
type world struct {
	orchestrator.Sessions
	mu      sync.Mutex
	turn    *orchestrator.ActiveTurn // nil if no turn runs
	notices []string
	audit   []orchestrator.AuditEntry
	asked   []cli.Event
	answer  func(ctx context.Context) (cli.Decision, error)
	jobs    []orchestrator.Job
	works   []orchestrator.Work
	knobs   knobs
}

// knobs change how a world sees clients outside of turns, and record where their messages go.
type knobs struct {
	chats  []orchestrator.ConversationID // of messages and files
	nested bool                          // clients descend from a run
	now    time.Time                     // zero: the real time
}

func (k *knobs) time() time.Time {
	if k.now.IsZero() {
		return time.Now()
	}
	return k.now
}

func (w *world) ActiveTurn(in orchestrator.ConversationID, agent cli.Agent) (orchestrator.ActiveTurn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == nil || in != home || agent != "claude" {
		return orchestrator.ActiveTurn{}, orchestrator.ErrNoTurn
	}
	return *w.turn, nil
}

func (w *world) AskUser(ctx context.Context, _ cli.TurnID, asked cli.Event) (cli.Decision, error) {
	w.mu.Lock()
	w.asked = append(w.asked, asked)
	w.mu.Unlock()
	return w.answer(ctx)
}

func (w *world) SendFor(_ context.Context, t orchestrator.Turn, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices, w.knobs.chats = append(w.notices, text), append(w.knobs.chats, t.Prompt.Conversation)
	return nil
}

func (w *world) RecordAudit(_ context.Context, entries ...orchestrator.AuditEntry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit = append(w.audit, entries...)
	return nil
}

func (w *world) FindSessions(_ context.Context, q orchestrator.SessionQuery) ([]orchestrator.FoundSession, bool,
	error) {
	all := []orchestrator.FoundSession{
		{Session: orchestrator.Session{ID: "S1", Title: "here", Dir: w.turn.Request.Dir}, Excerpt: "the words"},
		{Session: orchestrator.Session{ID: "S2", Title: "elsewhere", Dir: "/elsewhere"}, Excerpt: "the words"},
	}
	if q.Scope.Conversation != home {
		return nil, false, errors.New("the scope is missing")
	}
	all = slices.DeleteFunc(all, func(s orchestrator.FoundSession) bool {
		return q.Dir != "" && s.Session.Dir != q.Dir
	})
	return all[min(q.Offset, len(all)):], false, nil
}

func (w *world) Scope(_ context.Context, t orchestrator.Turn) (orchestrator.SessionScope, error) {
	return orchestrator.SessionScope{Conversation: t.Prompt.Conversation}, nil
}

func (w *world) Seen(_ context.Context, _ orchestrator.SessionScope, id string) (orchestrator.Session, error) {
	if id != "S1" && id != "auth-789" {
		return orchestrator.Session{}, orchestrator.ErrNoSession
	}
	return orchestrator.Session{ID: "S1", Title: "here"}, nil
}

// Turns returns a turn, the work that it asked for, and an answer that fills the budget of a call.
func (w *world) Turns(context.Context, orchestrator.ConversationID, orchestrator.SessionID, int) ([]orchestrator.Turn,
	error) {
	turn := orchestrator.Turn{ID: "t1", Agent: "claude", State: orchestrator.TurnDone,
		Prompt: orchestrator.Prompt{Text: "Fix it"}, Outcome: orchestrator.Outcome{Text: "Fixed.", Model: "opus"}}
	work := orchestrator.Turn{ID: "t2", Agent: "codex", State: orchestrator.TurnFailed,
		Entry:  orchestrator.Entry{Kind: orchestrator.WorkEntry, Role: "tester", Asks: "t1"},
		Prompt: orchestrator.Prompt{Text: "Test it"}, Outcome: orchestrator.Outcome{Failure: "It crashed."}}
	return []orchestrator.Turn{turn, work}, nil
}

// worldSteps are the steps of the entries of a world.
type worldSteps struct{ orchestrator.Steps }

func (worldSteps) StepsOf(_ context.Context, _ orchestrator.ConversationID,
	id cli.TurnID) ([]orchestrator.Step, error) {
	if id == "t1" {
		return []orchestrator.Step{{Number: 1, Title: "a.go", Change: cli.FileAdded}}, nil
	}
	steps := []orchestrator.Step{
		{Number: 1, Tool: "Bash", Input: `{"command":"go test","timeout":5}`, Err: "exit code 1"},
		{Number: 2, Tool: "Write", Input: `{"content":"` + strings.Repeat("x", 5000) + `"}`}}
	for range 50 {
		steps = append(steps, orchestrator.Step{Tool: "Read", Title: "b.go"})
	}
	return steps, nil
}

// jobs records the jobs that agents scheduled.
type jobs struct {
	anyJobs
	w *world
}

// anyJobs is Jobs under another name, because a method has that name.
type anyJobs interface{ orchestrator.Jobs }

func (jobs) ReadSchedule(_ orchestrator.ConversationID, text, _ string) (string, string, error) {
	if text == "sometime" {
		return "", "", &orchestrator.BadJob{Why: "that is no time"}
	}
	return "0 9 * * *", "UTC", nil
}

func (jobs) CheckJob(j orchestrator.Job) (orchestrator.JobStatus, error) {
	j.When = "every day at 9:00"
	return orchestrator.JobStatus{Job: j}, nil
}

func (s jobs) AddJob(_ context.Context, j orchestrator.Job) (orchestrator.JobStatus, error) {
	s.w.jobs = append(s.w.jobs, j)
	return orchestrator.JobStatus{Job: j}, nil
}

func (w *world) SendFiles(_ context.Context, to orchestrator.ConversationID, _ orchestrator.FilePlace, key string,
	files []orchestrator.OutFile) ([]*orchestrator.FileError, error) {
	if files[0].Path == "/etc/shadow" {
		return []*orchestrator.FileError{{Path: files[0].Path, Why: orchestrator.FileOutside}}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices = append(w.notices, key+" "+files[0].Path+" "+files[0].Caption)
	w.knobs.chats = append(w.knobs.chats, to)
	return nil, nil
}

// readFile returns a.go, a large file and a picture.
func (w *world) readFile(_ context.Context, _ orchestrator.FilePlace, path string) (orchestrator.ProjectFile, error) {
	content, ok := map[string]string{"a.go": "It rains.\n", "large": strings.Repeat("x", 100<<10),
		"picture": "\xff"}[path]
	if !ok {
		return orchestrator.ProjectFile{}, &orchestrator.FileError{Path: path, Why: orchestrator.FileOutside}
	}
	return orchestrator.ProjectFile{Name: path, Content: []byte(content)}, nil
}

// Ask answers with the question; one model never answers.
func (w *world) Ask(_ context.Context, q orchestrator.ConsultQuestion) (orchestrator.ConsultAnswer, error) {
	if q.Model.Agent == "silent" {
		return orchestrator.ConsultAnswer{}, &cli.Failure{Kind: cli.Overloaded, Agent: "silent"}
	}
	if q.For == nil || q.For.Request.Dir != w.turn.Request.Dir {
		return orchestrator.ConsultAnswer{}, fmt.Errorf("asked for %+v", q.For)
	}
	m, leftOut := q.Model, 0
	if m.Agent == "" {
		m.Agent, leftOut = "the last", 2
	}
	return orchestrator.ConsultAnswer{Session: "S1", Model: m, LeftOut: leftOut,
		Text: "on " + q.Session + ": " + q.Context.Contents + q.Text}, nil
}

// AskFor is not called by any tool.
func (w *world) AskFor(context.Context, cli.TurnID, orchestrator.Helper, cli.Event) (cli.Decision, error) {
	return cli.Decision{}, orchestrator.ErrNoTurn
}

func (w *world) LastWorker(_ context.Context, _ orchestrator.ConversationID,
	session string) (orchestrator.ModelChoice, error) {
	if session != "auth-789" {
		return orchestrator.ModelChoice{}, orchestrator.ErrNoConsult
	}
	return orchestrator.ModelChoice{Agent: "gemini"}, nil
}

func (w *world) Work(_ context.Context, task orchestrator.Work) (orchestrator.ConsultAnswer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works = append(w.works, task)
	if task.Model.Agent == "silent" {
		return orchestrator.ConsultAnswer{}, &cli.Failure{Kind: cli.Overloaded, Agent: "silent"}
	}
	return orchestrator.ConsultAnswer{Session: "S1", Model: task.Model, Text: "did: " + task.Text}, nil
}

// Role returns the role "tester".
func (w *world) Role(name string) (orchestrator.Role, bool) {
	if name != "tester" {
		return orchestrator.Role{}, false
	}
	return orchestrator.Role{Prompt: "You test.", Agent: "codex", Model: "small",
		Tools: cli.ToolList{Denied: []string{"web"}}}, true
}

func (w *world) Roles() []string { return []string{"tester"} }

// Group asks each model of the panel and lets the first conclude.
func (w *world) Group(ctx context.Context, q orchestrator.GroupQuestion,
	_ func(orchestrator.GroupStep)) (all orchestrator.GroupAnswer, err error) {
	for _, m := range q.Panel {
		a, err := w.Ask(ctx, orchestrator.ConsultQuestion{Model: m, Text: q.Text, For: q.For})
		all.Steps = append(all.Steps, orchestrator.GroupStep{Round: 1, Model: m, Answer: a, Err: err})
	}
	if all.Steps[1].Err != nil && len(q.Panel) == orchestrator.GroupLeast {
		return all, orchestrator.ErrNoGroup
	}
	all.Conclusion = orchestrator.GroupStep{Round: 2, Model: q.Panel[0],
		Answer: orchestrator.ConsultAnswer{Text: "all in all"}}
	return all, nil
}

func findModel(_ context.Context, _ cli.Sandbox, name string) (orchestrator.ModelChoice, error) {
	if name == "nothing" {
		return orchestrator.ModelChoice{}, errors.New("no such model")
	}
	return orchestrator.ModelChoice{Agent: cli.Agent(name)}, nil
}

// rig is a server with its world.
type rig struct {
	*world
	t    *testing.T
	dir  string
	stop func()
	srv  *mcp.Server
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	for len(dir) < 120 { // longer than a socket's path may be
		dir = filepath.Join(dir, "a-long-name-of-a-directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, world: &world{turn: &orchestrator.ActiveTurn{
		Turn: orchestrator.Turn{ID: "T1", Agent: "claude",
			Prompt: orchestrator.Prompt{Conversation: home, Person: 1}},
		Request: cli.Request{Dir: t.TempDir()}, Life: t.Context(), Hide: func(s string) string {
			return strings.ReplaceAll(s, "hunter2", "***")
		},
	}}}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) start() {
	r.t.Helper()
	guard, err := statesocket.OpenGuard(r.dir, func(int) (bool, error) { return r.knobs.nested, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	srv, err := mcp.Open(mcp.Options{
		Dir: r.dir, Version: "test", Turns: r.world, Chat: r.world, Audit: r.world, Sessions: r.world,
		Steps: worldSteps{}, Jobs: jobs{w: r.world}, Files: r.world, Consults: r.world, FindModel: findModel,
		Roles: r.world,
		Place: func(context.Context, orchestrator.Turn) (orchestrator.FilePlace, error) {
			return orchestrator.FilePlace{}, nil
		},
		Outside:  mcp.Outside{Turns: r.world, Guard: guard, Owner: func() orchestrator.PersonID { return 1 }},
		ReadFile: r.world.readFile,
		Patience: time.Minute, Now: r.time, NewID: func() string { return "J1" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := srv.Serve(ctx); err != nil {
			r.t.Errorf("serve: %v", err)
		}
	})
	r.srv, r.stop = srv, func() { cancel(); served.Wait() }
}

// client connects through a relay, as an agent does.
func (r *rig) client(token string) (*sdk.ClientSession, error) {
	r.t.Helper()
	return r.clientOf(token, "")
}

// clientOf is client with a token and a secret.
func (r *rig) clientOf(token, secret string) (*sdk.ClientSession, error) {
	r.t.Helper()
	return r.relay(&relay.Relay{Token: token, Secret: secret, Dial: func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, r.dir)
	}})
}

// clientIn connects as an agent in a sandbox does.
func (r *rig) clientIn(sandbox cli.Sandbox, token string) (*sdk.ClientSession, error) {
	r.t.Helper()
	return r.relay(&relay.Relay{Token: token, Dial: func(context.Context) (net.Conn, error) {
		return r.dialFrom(sandbox), nil
	}})
}

// dialFrom opens a connection from a sandbox.
func (r *rig) dialFrom(sandbox cli.Sandbox) net.Conn {
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.srv.ServeConn(context.Background(), theirs, sandbox)
	}()
	r.t.Cleanup(func() { _ = ours.Close(); <-served })
	return ours
}

func (r *rig) relay(way *relay.Relay) (*sdk.ClientSession, error) {
	r.t.Helper()
	toRelay, fromClient := io.Pipe()
	toClient, fromRelay := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := way.Run(context.Background(), toRelay, fromRelay); err != nil {
			r.t.Errorf("relay: %v", err)
		}
		_ = fromRelay.Close()
	}()
	r.t.Cleanup(func() { _ = fromClient.Close(); <-ended })
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	return c.Connect(r.t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
}

func (r *rig) connect() *sdk.ClientSession {
	r.t.Helper()
	s, err := r.client(r.srv.Token(home, onHost))
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// call calls a tool and returns its text and whether it failed.
func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	got, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	for _, c := range got.Content {
		text += c.(*sdk.TextContent).Text
	}
	return text, got.IsError
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	good := r.srv.Token(home, onHost)
	named, signature, _ := strings.Cut(good, ".")
	otherNamed, _, _ := strings.Cut(r.srv.Token(orchestrator.ConversationID{Chat: 2}, onHost), ".")
	for name, token := range map[string]string{
		"none": "", "no signature": named, "another signature": named + "." + signature[:len(signature)-4] + "AAAA",
		"another conversation": otherNamed + "." + signature, "garbage": "a.b.c",
	} {
		if _, err := r.client(token); err == nil || !strings.Contains(err.Error(), "not valid") {
			t.Errorf("%s: a forged token gives %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(r.dir, "mcp.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "mcp.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info, err)
	}
}

// Connections are limited: those of one conversation, and those without a token. Others still get served.
func TestConnectionsAreBounded(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	token := r.srv.Token(orchestrator.ConversationID{Chat: 2}, onHost)
	refused := error(nil)
	for range 40 {
		if _, err := r.client(token); err != nil {
			refused = err
			break
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "which is the limit") {
		t.Errorf("one connection too many: %v", refused)
	}
	const silent = 100
	closed := make(chan struct{}, silent)
	for range silent {
		conn, err := relay.Dial(t.Context(), r.dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				closed <- struct{}{}
			}
		}()
	}
	for n := range silent - 64 {
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatalf("of %d connections without a token %d were closed", silent, n)
		}
	}
	if text, failed := call(t, s, "send_message", map[string]any{"text": "still here"}); failed {
		t.Errorf("another client: %s", text)
	}
}

// A process in a sandbox uses up each limit of connections: it sends garbage, it sends nothing, and it uses the token of
// its conversation. Agents on the host still get the tools, and garbage does not even affect agents in the sandbox.
func TestAttackConnectionsOfASandbox(t *testing.T) {
	r := newRig(t)
	r.turn.Turn.Sandbox = "box"
	// garble opens a connection and returns the answer to garbage. It does not close the connection.
	garble := func() string {
		conn := r.dialFrom("box")
		go func() { _, _ = io.WriteString(conn, "garbage\n") }()
		line, _ := bufio.NewReader(conn).ReadString('\n') // the line is empty if the server closed the connection
		return line
	}
	if first := garble(); !strings.Contains(first, "refused") {
		t.Errorf("garbage is answered by %q", first)
	}
	for range 100 {
		garble()
	}
	r.connect()
	for n := range 100 {
		_, err := r.clientIn("box", r.srv.Token(home, inBox))
		if err != nil && n > 0 {
			break
		}
		if err != nil || n == 99 {
			t.Errorf("client %d in the sandbox: %v", n, err)
		}
	}
	r.connect()
	const silent = 100
	closed := make(chan struct{}, silent)
	for range silent {
		conn := r.dialFrom("box")
		go func() {
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				closed <- struct{}{}
			}
		}()
	}
	for range silent - 64 {
		<-closed
	}
	r.connect()
}

func TestACallCountsOnlyInATurnOfItsAgent(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	if text, failed := call(t, s, "send_message", map[string]any{"text": "my password is hunter2"}); failed {
		t.Fatalf("in a turn: %s", text)
	}
	other, err := r.client(r.srv.Token(home, orchestrator.AgentEnv{Agent: "codex"}))
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, other, "send_message", map[string]any{"text": "x"}); !failed ||
		!strings.Contains(text, "only while a turn") {
		t.Errorf("another agent: %s", text)
	}
	r.mu.Lock()
	r.turn = nil
	r.mu.Unlock()
	if text, failed := call(t, s, "send_message", map[string]any{"text": "x"}); !failed ||
		!strings.Contains(text, "only while a turn") {
		t.Errorf("after the turn: %s", text)
	}
	if len(r.notices) != 1 || r.notices[0] != "my password is ***" {
		t.Errorf("the chat was told %q", r.notices)
	}
	if len(r.audit) != 1 || r.audit[0].What != orchestrator.AuditCalled || r.audit[0].Tool != "ductor.send_message" ||
		r.audit[0].Title != "my password is ***" {
		t.Errorf("the audit has %+v", r.audit)
	}
}

// A process that a turn left in a sandbox polls the tools with its token, until a turn of the same agent runs in the
// same chat on the host. It must not act for that turn.
func TestAttackATokenOfAnotherEnvironment(t *testing.T) {
	r := newRig(t)
	for name, connect := range map[string]func() (*sdk.ClientSession, error){
		"the host's token in a sandbox": func() (*sdk.ClientSession, error) {
			return r.clientIn("box", r.srv.Token(home, onHost))
		},
		"a token of another sandbox": func() (*sdk.ClientSession, error) {
			return r.clientIn("other", r.srv.Token(home, inBox))
		},
		"a sandbox's token on the host": func() (*sdk.ClientSession, error) {
			return r.client(r.srv.Token(home, inBox))
		},
	} {
		if _, err := connect(); err == nil || !strings.Contains(err.Error(), "environment") {
			t.Errorf("%s: %v", name, err)
		}
	}
	left, err := r.clientIn("box", r.srv.Token(home, inBox))
	if err != nil {
		t.Fatal(err)
	}
	run := func(in cli.Sandbox) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.turn.Turn.Sandbox = in
	}
	onTheHost := r.connect()
	for _, c := range []struct {
		client    *sdk.ClientSession
		from, now cli.Sandbox
	}{{left, "box", ""}, {left, "box", "box"}, {left, "box", "other"}, {onTheHost, "", "box"}, {onTheHost, "", ""}} {
		run(c.now)
		text, failed := call(t, c.client, "list_sessions", nil)
		if failed != (c.from != c.now) || failed && !strings.Contains(text, "another environment") {
			t.Errorf("a process of %q calls during a turn in %q: %v, %s", c.from, c.now, failed, text)
		}
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		want string
	}{
		"a megabyte of text": {"send_message", map[string]any{"text": strings.Repeat("x", 1<<20)},
			"the arguments have"},
		"a long message": {"send_message", map[string]any{"text": strings.Repeat("x", 64<<10)},
			"send a file instead"},
		"no text": {"send_message", map[string]any{"text": " "}, "empty"},
		"a long option": {"ask_user", map[string]any{"question": "?",
			"options": []string{strings.Repeat("x", 100)}}, "does not fit a button"},
		"a path above":      {"count_project_tokens", map[string]any{"path": "../.."}, "not a path below"},
		"an absolute path":  {"count_project_tokens", map[string]any{"path": "/etc"}, "not a path below"},
		"a foreign session": {"describe_session", map[string]any{"session_id": "S9"}, "no such session that the user"},
		"no words":          {"search_project_history", map[string]any{"words": ""}, "no words"},
		"no schedule":       {"schedule", map[string]any{"when": "sometime", "prompt": "x"}, "that is no time"},
		"a wrong type":      {"send_message", map[string]any{"text": 1}, "type"},
	} {
		if text, failed := call(t, s, c.tool, c.args); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: %.200s", name, text)
		}
	}
	for range 200 {
		if text, failed := call(t, s, "list_sessions", nil); failed {
			if !strings.Contains(text, "the limit") {
				t.Errorf("too many calls: %s", text)
			}
			return
		}
	}
	t.Error("a turn may call without end")
}

func TestAQuestionIsWithdrawnWithItsCall(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	r.answer = func(context.Context) (cli.Decision, error) {
		return cli.Decision{Allow: true, Answers: [][]string{{"Red", "Blue"}}}, nil
	}
	if text, failed := call(t, s, "ask_user",
		map[string]any{"question": "Which?", "options": []string{"Red", "Blue"}, "multiple": true}); failed ||
		text != "Red\nBlue" {
		t.Errorf("answered: %q", text)
	}
	r.answer = func(context.Context) (cli.Decision, error) {
		return cli.Decision{Reason: "No user answered in time."}, nil
	}
	if text, failed := call(t, s, "ask_user", map[string]any{"question": "Which?"}); failed ||
		!strings.Contains(text, "No user answered in time.") {
		t.Errorf("not answered: %q", text)
	}
	asking, withdrawn := make(chan struct{}), make(chan error, 1)
	r.answer = func(ctx context.Context) (cli.Decision, error) {
		close(asking)
		<-ctx.Done()
		withdrawn <- ctx.Err()
		return cli.Decision{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asking; cancel() }()
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "ask_user",
		Arguments: map[string]any{"question": "Which?"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gives %v", err)
	}
	if err := <-withdrawn; err == nil {
		t.Error("the question stays")
	}
}

func TestSchedulingAsksTheUser(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	args := map[string]any{"when": "every day at 9", "prompt": "Look at the\nnews"}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Reason: "not now"}, nil }
	if text, _ := call(t, s, "schedule", args); !strings.Contains(text, "not now") || len(r.jobs) != 0 {
		t.Errorf("denied: %q, %v", text, r.jobs)
	}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Allow: true}, nil }
	if text, failed := call(t, s, "schedule", args); failed || len(r.jobs) != 1 || r.jobs[0].Conversation != home ||
		r.jobs[0].Person != 1 {
		t.Errorf("allowed: %q, %v", text, r.jobs)
	}
	asked := r.asked[0].(cli.ApprovalAsked)
	if asked.Detail != "every day at 9:00\n\nLook at the\nnews" || asked.SaysMore() ||
		!strings.Contains(string(asked.Input), `"0 9 * * *"`) || !asked.Allowable() {
		t.Errorf("the approval shows %+v", asked)
	}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{}, nil }
	if call(t, s, "schedule", map[string]any{"when": "every day at 9", "prompt": "Look",
		"name": "news"}); !r.asked[2].(cli.ApprovalAsked).SaysMore() {
		t.Errorf("a name is not shown: %+v", r.asked[2])
	}
	r.turn.Turn.Prompt.Rights.Of = orchestrator.RightsOfJob
	if text, failed := call(t, s, "schedule", args); !failed || len(r.jobs) != 1 {
		t.Errorf("a job schedules: %q", text)
	}
}

// A question that is refused asks no model. The text names the reason.
func TestQuestionsThatAreRefused(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	for name, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"empty":             {map[string]any{"question": " "}, "is empty"},
		"an unknown model":  {map[string]any{"model": "nothing", "session_id": "auth-789"}, "no such model"},
		"a line break":      {map[string]any{"session_id": "a\nb"}, "control character"},
		"an escape":         {map[string]any{"session_id": "a\x1b[2J"}, "control character"},
		"a C1 control":      {map[string]any{"session_id": "a\u0085b"}, "control character"},
		"10 kB":             {map[string]any{"session_id": strings.Repeat("ä", 10<<10)}, "10240 characters, and 128"},
		"a file outside":    {map[string]any{"context": []string{"../x"}}, "../x"},
		"a text as context": {map[string]any{"context": "a.go"}, "array"},
		"too large":         {map[string]any{"context": []string{"large", "large"}}, "more than 128 KB"},
		"a picture":         {map[string]any{"context": []string{"picture"}}, "not text"},
		"too many files":    {map[string]any{"context": slices.Repeat([]string{"a.go"}, 21)}, "21 files, and 20"},
	} {
		args := map[string]any{"agent": "codex", "question": "Why?"}
		if name == "an unknown model" {
			delete(args, "agent")
		}
		maps.Copy(args, c.args)
		if text, failed := call(t, s, "consult_with", args); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q", name, text)
		}
	}
	if text, failed := call(t, s, "consult_with", map[string]any{"agent": "codex", "question": "Why?",
		"session_id": strings.Repeat("ä", 128)}); failed {
		t.Errorf("128 characters: %s", text)
	}
}

// A turn that no listed user asked for cannot ask models.
func TestOnlyTurnsOfListedUsersConsult(t *testing.T) {
	for _, of := range []orchestrator.RightsOf{orchestrator.RightsOfJob, orchestrator.RightsOfMember} {
		r := newRig(t)
		s := r.connect()
		r.turn.Turn.Prompt.Rights.Of = of
		for tool, args := range map[string]map[string]any{
			"consult_with": {"model": "codex", "question": "Why?"},
			"group_think":  {"models": []string{"codex", "gemini"}, "question": "Why?"},
		} {
			if text, failed := call(t, s, tool, args); !failed ||
				!strings.Contains(text, "only a turn that a listed user") {
				t.Errorf("%s with the rights of a %s: %q", tool, of, text)
			}
		}
	}
}

// The user sees the whole task before another agent works on it. Only turns that may change something can delegate.
func TestWorkAsksTheUser(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	args := map[string]any{"agent": "codex", "task": "Fix the\nlock", "context": []string{"a.go"}}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Reason: "not now"}, nil }
	if text, _ := call(t, s, "work_with", args); !strings.Contains(text, "not now") || len(r.works) != 0 {
		t.Errorf("denied: %q, %v", text, r.works)
	}
	shown := []string{r.asked[0].(cli.ApprovalAsked).Detail}
	for _, f := range r.asked[0].(cli.ApprovalAsked).Fields {
		shown = append(shown, f.Value)
	}
	if all := strings.Join(shown, "|"); !strings.Contains(all, "codex") || !strings.Contains(all, "Fix the\nlock") ||
		!strings.Contains(all, "a.go") {
		t.Errorf("the approval shows %q", all)
	}
	r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Allow: true}, nil }
	text, failed := call(t, s, "work_with", args)
	if failed || !strings.Contains(text, "Fix the\nlock") ||
		!strings.Contains(text, "(codex worked on it; session_id S1)") || r.works[0].For.Turn.ID != "T1" ||
		r.works[0].Wait != time.Minute || r.works[0].Context.Files[0].Name != "a.go" ||
		r.works[0].Person != 1 {
		t.Errorf("allowed: %q, %+v", text, r.works)
	}
	if text, failed := call(t, s, "work_with", map[string]any{"task": "go on", "session_id": "auth-789"}); failed ||
		r.works[1].Session != "auth-789" || !strings.Contains(text, "(gemini worked on it; session_id auth-789)") {
		t.Errorf("going on: %q, %+v", text, r.works)
	}
	if text, failed := call(t, s, "work_with", map[string]any{"task": "test it", "role": "tester"}); failed ||
		r.works[2].Instructions != "You test." || r.works[2].Role != "tester" ||
		len(r.works[2].Tools) != 1 || !strings.Contains(text, "codex/small") {
		t.Errorf("a role: %q, %+v", text, r.works)
	}
	if text, failed := call(t, s, "work_with", args); !failed || !strings.Contains(text, "the limit") ||
		len(r.works) != 3 {
		t.Errorf("work without end: %q", text)
	}
}

func TestWorkThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args   map[string]any
		change func(turn *orchestrator.ActiveTurn)
		want   string
	}{
		"a job": {map[string]any{"agent": "codex", "task": "x"}, func(a *orchestrator.ActiveTurn) {
			a.Turn.Prompt.Rights.Of = orchestrator.RightsOfJob
		}, "only a turn that a listed user"},
		"a member": {map[string]any{"agent": "codex", "task": "x"}, func(a *orchestrator.ActiveTurn) {
			a.Turn.Prompt.Rights.Of = orchestrator.RightsOfMember
		}, "only a turn that a listed user"},
		"a plan": {map[string]any{"agent": "codex", "task": "x"}, func(a *orchestrator.ActiveTurn) {
			a.Request.Permission = cli.Plan
		}, "only plans"},
		"no task":          {map[string]any{"agent": "codex", "task": " "}, nil, "empty"},
		"a long task":      {map[string]any{"agent": "codex", "task": strings.Repeat("x", 5000)}, nil, "the limit"},
		"an unknown model": {map[string]any{"agent": "nothing", "task": "x"}, nil, "no such model"},
		"an unknown role": {map[string]any{"agent": "codex", "task": "x", "role": "king"}, nil,
			"roles here: tester"},
		"a session without an agent": {map[string]any{"task": "x", "session_id": "C9"}, nil,
			"name an agent or a model"},
		"no agent": {map[string]any{"task": "x"}, nil, "name an agent or a model"},
		"a bad name": {map[string]any{"agent": "codex", "task": "x", "session_id": "a\nb"}, nil,
			"control character"},
		"a file outside": {map[string]any{"agent": "codex", "task": "x", "context": []string{"/etc/shadow"}},
			nil, "/etc/shadow"},
		"a failure": {map[string]any{"agent": "silent", "task": "x"}, nil,
			"what the agent changed until then stays"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.change != nil {
				c.change(r.turn)
			}
			r.answer = func(context.Context) (cli.Decision, error) { return cli.Decision{Allow: true}, nil }
			if text, failed := call(t, r.connect(), "work_with", c.args); !failed || !strings.Contains(text, c.want) ||
				len(r.works) > 0 && name != "a failure" {
				t.Errorf("%q, %+v", text, r.works)
			}
		})
	}
}

func TestCountingTokens(t *testing.T) {
	r := newRig(t)
	for name, text := range map[string]string{"a.txt": "one two three", "d/b.txt": "four five", ".hidden/c": "no",
		"node_modules/x": "no", "bin": "\x00\x01"} {
		path := filepath.Join(r.turn.Request.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(r.turn.Request.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := r.connect()
	text, failed := call(t, s, "count_project_tokens", nil)
	if failed || !strings.Contains(text, "in 2 files") || !strings.Contains(text, "d/") ||
		strings.Contains(text, "link") {
		t.Errorf("counted: %s", text)
	}
	if text, failed := call(t, s, "count_project_tokens", map[string]any{"path": "link"}); !failed {
		t.Errorf("a link leads out: %s", text)
	}
}

// An agent in a sandbox can replace its directory by a link, which leads to another directory on this host.
func TestCountingTokensOfASandbox(t *testing.T) {
	r := newRig(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	r.turn.Turn.Sandbox, r.turn.Request.Dir = "box", filepath.Join(base, "project")
	if err = errors.Join(err, os.Mkdir(r.turn.Request.Dir, 0o700), os.Mkdir(filepath.Join(base, "private"), 0o700),
		os.WriteFile(filepath.Join(base, "private", "name"), []byte("one"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := r.clientIn("box", r.srv.Token(home, inBox))
	if err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, s, "count_project_tokens", nil); failed || !strings.Contains(text, "in 0 files") {
		t.Errorf("counted: %s", text)
	}
	if err := errors.Join(os.Remove(r.turn.Request.Dir), os.Symlink("private", r.turn.Request.Dir)); err != nil {
		t.Fatal(err)
	}
	if text, failed := call(t, s, "count_project_tokens", nil); !failed {
		t.Errorf("a link shows files of the host: %s", text)
	}
}

func TestSendingFiles(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	if text, failed := call(t, s, "send_file", map[string]any{"path": "/etc/shadow"}); !failed ||
		!strings.Contains(text, "/etc/shadow") || len(r.notices) != 0 {
		t.Errorf("a file outside: %s", text)
	}
	if text, failed := call(t, s, "send_file", map[string]any{"path": "a.png", "caption": "hunter2"}); failed ||
		r.notices[0] != "mcp/J1 a.png ***" {
		t.Errorf("a file: %s, %q", text, r.notices)
	}
}

func TestConsulting(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	text, failed := call(t, s, "consult_with", map[string]any{"model": "codex", "question": "Why?",
		"context": []string{"a.go"}, "output_format": "one word"})
	if failed || !strings.Contains(text, "<file path=\"a.go\">\nIt rains.\n</file>") ||
		!strings.Contains(text, "one word") ||
		!strings.Contains(text, "(codex answered; session_id S1)") {
		t.Errorf("asked: %s", text)
	}
	if text, failed := call(t, s, "consult_with", map[string]any{"question": "And?",
		"session_id": "auth-789"}); failed || !strings.Contains(text, "on auth-789: And?") ||
		!strings.Contains(text, "(the last answered; session_id auth-789") ||
		!strings.Contains(text, "2 earlier entries of the session did not fit") {
		t.Errorf("asked on: %s", text)
	}
	for _, model := range []string{"opus", "claude opus"} {
		name := map[string]any{"agent": "claude", "model": model}
		name["question"], name["session_id"] = "And?", "auth-789"
		if text, failed := call(t, s, "consult_with", name); failed ||
			!strings.Contains(text, "(claude opus answered") {
			t.Errorf("asked with agent and model: %s", text)
		}
	}
	text, failed = call(t, s, "group_think",
		map[string]any{"models": []string{"codex", "silent", "gemini"}, "question": "Which?"})
	if failed || !strings.Contains(text, "silent did not answer") || !strings.Contains(text, "## gemini") ||
		!strings.Contains(text, "## Conclusion\n\nall in all") {
		t.Errorf("a group: %s", text)
	}
	if text, failed := call(t, s, "group_think",
		map[string]any{"models": []string{"codex", "gemini"}, "question": "Which?"}); !failed ||
		!strings.Contains(text, "the limit") {
		t.Errorf("questions without end: %s", text)
	}
}

func TestAGroupOfWhichOneAnswers(t *testing.T) {
	s := newRig(t).connect()
	if text, failed := call(t, s, "group_think",
		map[string]any{"models": []string{"codex", "silent"}, "question": "Which?"}); !failed ||
		!strings.Contains(text, "fewer than two models answered") ||
		!strings.Contains(text, "## codex") || strings.Contains(text, "Conclusion") {
		t.Errorf("a group of which one answers: %s", text)
	}
}

func TestAProgramCallsATool(t *testing.T) {
	r := newRig(t)
	way := func(token string) *relay.Relay {
		return &relay.Relay{Token: token, Dial: func(ctx context.Context) (net.Conn, error) {
			return relay.Dial(ctx, r.dir)
		}}
	}
	good := r.srv.Token(home, onHost)
	if text, err := way(good).Call(t.Context(), "send_message", map[string]any{"text": "hello"}); err != nil ||
		!strings.Contains(text, "on its way") {
		t.Errorf("a call gives %q, %v", text, err)
	}
	if _, err := way(good).Call(t.Context(), "send_message", map[string]any{"text": ""}); err == nil ||
		!strings.Contains(err.Error(), "empty") {
		t.Errorf("a call that fails gives %v", err)
	}
	if _, err := way("forged").Call(t.Context(), "send_message", map[string]any{"text": "hello"}); err == nil ||
		!strings.Contains(err.Error(), "not valid") {
		t.Errorf("a forged token gives %v", err)
	}
}

func TestSearchStaysInTheProject(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	if text, _ := call(t, s, "search_project_history", map[string]any{"words": "words"}); !strings.Contains(text,
		"S1") || strings.Contains(text, "S2") {
		t.Errorf("in the project: %s", text)
	}
	if text, _ := call(t, s, "search_project_history",
		map[string]any{"words": "words", "everywhere": true}); !strings.Contains(text, "S2") {
		t.Errorf("everywhere: %s", text)
	}
}

// An agent with its relay survives a restart of ductor. The next process serves it, and rejects sessions that it does
// not know.
func TestTheRelayOutlivesARestart(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	asking := make(chan struct{})
	r.answer = func(ctx context.Context) (cli.Decision, error) {
		close(asking)
		<-ctx.Done()
		return cli.Decision{}, ctx.Err()
	}
	lost := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(),
			&sdk.CallToolParams{Name: "ask_user", Arguments: map[string]any{"question": "Which?"}})
		lost <- err
	}()
	<-asking
	r.stop()
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("the call that was running gives %v", err)
	}
	r.start()
	if text, failed := call(t, s, "send_message", map[string]any{"text": "still here"}); failed {
		t.Errorf("after the restart: %s", text)
	}
	if len(r.notices) != 1 {
		t.Errorf("the chat was told %q", r.notices)
	}
}

// describe_session shows every entry with its kind, role, agent and state, and the tools with their arguments. It names
// omissions. It rejects an invalid session_id.
func TestASessionIsDescribed(t *testing.T) {
	r := newRig(t)
	s := r.connect()
	for _, id := range []string{"S1", "auth-789"} {
		text, failed := call(t, s, "describe_session", map[string]any{"session_id": id})
		for _, part := range []string{
			", turn, done\n\nFix it", "- changed a file: add a.go", "### claude/opus\n\nFixed.",
			", work as tester, asked for by an agent, failed\n\nTest it",
			`- Bash {"command":"go test","timeout":5}: exit code 1`, "[3020 bytes are left out]",
			"- 12 more tools and changes are left out", "### codex\n\nIt crashed.",
		} {
			if failed || !strings.Contains(text, part) {
				t.Errorf("%q is not in %s", part, text)
			}
		}
	}
	for _, id := range []string{"a\nb", strings.Repeat("x", 10<<10)} {
		if text, failed := call(t, s, "describe_session", map[string]any{"session_id": id}); !failed ||
			!strings.Contains(text, "session_id has") {
			t.Errorf("%.20q: %s", id, text)
		}
	}
}
