package agent

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// codexThreads contains the threads of an app server. A thread runs one turn at a time. Different threads run
// independently of each other.
type codexThreads struct {
	server *server

	mu      sync.Mutex
	all     map[string]*codexThread
	waiting map[string]chan json.RawMessage // for each request ID, receives the client's answer
	asked   int
	exit    chan int                   // receives the exit code if a turn ends the process
	limits  map[string]json.RawMessage // usage limits of the account, by ID
}

// limit stores usage limits of the account. If report is true, it also sends the new limits to the client. Like Codex,
// it sends only the limits that have changed.
func (c *codexThreads) limit(limits json.RawMessage, report bool) {
	var of struct{ LimitID string }
	_ = json.Unmarshal(limits, &of)
	c.mu.Lock()
	c.limits[of.LimitID] = limits
	c.mu.Unlock()
	if report {
		c.notify("account/rateLimits/updated", obj("rateLimits", limits))
	}
}

type codexThread struct {
	id         string
	dir        string
	env        map[string]string
	model      string
	policy     string // approval policy of the thread
	sandbox    string
	context    map[string]string // additional context that the model already has
	subscribed bool              // the client is subscribed to the events of the thread
	unstable   bool              // an unstable feature is on, and Codex has not printed its warning about it yet

	mu     sync.Mutex
	turn   string // ID of the running turn, or ""
	cancel context.CancelCauseFunc
	more   []steeredIn // prompts that the client sent during the running turn, and that the model has not read yet
	left   []*toolLeft // commands that outlived an interrupted turn
}

// steeredIn is a prompt that the client sent during a turn. The field client contains the client's ID for the prompt.
type steeredIn struct{ prompt, client string }

// toolLeft is a command that outlives its turn.
type toolLeft struct{ kill func() }

func newCodexThreads(s *server) *codexThreads {
	return &codexThreads{server: s, all: map[string]*codexThread{}, waiting: map[string]chan json.RawMessage{},
		limits: map[string]json.RawMessage{},
		exit:   make(chan int, 1)}
}

// threadParams contains the parameters of all methods for threads and turns.
type threadParams struct {
	ThreadID       string                     `json:"threadId"`
	TurnID         string                     `json:"turnId"`
	ExpectedTurnID string                     `json:"expectedTurnId"`
	ClientMessage  string                     `json:"clientUserMessageId"`
	Dir            string                     `json:"cwd"`
	Model          string                     `json:"model"`
	Policy         json.RawMessage            `json:"approvalPolicy"`
	Sandbox        string                     `json:"sandbox"`
	SandboxPolicy  *struct{ Type string }     `json:"sandboxPolicy"`
	Config         map[string]json.RawMessage `json:"config"`
	Input          []struct{ Type, Text string }
	Limit          int `json:"limit"`
	// Additional contains more context for the model. Each source of context has its own entry. The model gets an entry
	// only if the entry is new or has changed.
	Additional map[string]struct{ Value string } `json:"additionalContext"`
}

const shellEnvPrefix = "shell_environment_policy.set."

func (t *codexThread) adjust(p threadParams) {
	if p.Dir != "" {
		t.dir = p.Dir
	}
	if p.Model != "" {
		t.model = p.Model
	}
	if p.Sandbox != "" {
		t.sandbox = p.Sandbox
	}
	if p.SandboxPolicy != nil {
		t.sandbox = map[string]string{"dangerFullAccess": "danger-full-access",
			"workspaceWrite": "workspace-write"}[p.SandboxPolicy.Type]
		if t.sandbox == "" {
			t.sandbox = "read-only"
		}
	}
	var policy string
	if json.Unmarshal(p.Policy, &policy) == nil && policy != "" {
		t.policy = policy
	}
	for name, raw := range p.Config {
		var value string
		if len(name) > len(shellEnvPrefix) && name[:len(shellEnvPrefix)] == shellEnvPrefix &&
			json.Unmarshal(raw, &value) == nil {
			t.env[name[len(shellEnvPrefix):]] = value
		}
	}
}

// take handles a request about a thread. It returns false for any other request.
func (c *codexThreads) take(in rpcLine) bool {
	var p threadParams
	if json.Unmarshal(in.Params, &p) != nil {
		c.server.refuse(in, -32600, "Invalid request: invalid type in params")
		return true
	}
	switch in.Method {
	case "thread/start":
		c.open(in, p, newThreadID())
	case "thread/resume":
		if !c.known(p.ThreadID) {
			c.server.refuse(in, -32600, "no rollout found for thread id "+p.ThreadID)
			return true
		}
		c.open(in, p, p.ThreadID)
	case "thread/loaded/list":
		c.loaded(in)
	case "account/rateLimits/read":
		c.mu.Lock()
		all := obj("rateLimits", obj(), "rateLimitsByLimitId", c.limits)
		c.mu.Unlock()
		c.server.reply(in, all)
	case "config/read":
		c.server.reply(in, obj("config", obj("model", "gpt-5.5", "model_reasoning_effort", nil,
			"sandbox_workspace_write", nil)))
	default:
		return c.takeOfThread(in, p)
	}
	return true
}

func (c *codexThreads) takeOfThread(in rpcLine, p threadParams) bool {
	switch in.Method {
	case "turn/start", "turn/steer", "turn/interrupt", "thread/backgroundTerminals/clean", "thread/unsubscribe",
		"thread/read":
	default:
		return false
	}
	c.mu.Lock()
	t := c.all[p.ThreadID]
	c.mu.Unlock()
	if t == nil {
		c.server.refuse(in, -32600, "thread not found: "+p.ThreadID)
		return true
	}
	switch in.Method {
	case "turn/start":
		c.start(in, t, p)
	case "turn/steer":
		c.steer(in, t, p)
	case "turn/interrupt":
		c.interrupt(in, t)
	case "thread/backgroundTerminals/clean":
		t.clean()
		c.server.reply(in, obj())
	case "thread/unsubscribe":
		t.mu.Lock()
		t.subscribed = false
		t.mu.Unlock()
		c.server.reply(in, obj("status", "unsubscribed"))
	case "thread/read":
		c.server.reply(in, obj("thread", obj("id", t.id, "status", obj("type", t.status()))))
	}
	return true
}

func (c *codexThreads) known(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id] != nil || c.server.store.has(codexFolder, id)
}

func (t *codexThread) status() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != "" {
		return "active"
	}
	return "idle"
}

func (c *codexThreads) loaded(in rpcLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.reply(in, obj("data", slices.AppendSeq([]string{}, maps.Keys(c.all)), "nextCursor", nil))
}

// open loads a thread and applies the settings in the request. Like Codex, it ignores the settings if the client is
// already subscribed to the thread.
func (c *codexThreads) open(in rpcLine, p threadParams, id string) {
	c.mu.Lock()
	t := c.all[id]
	if t == nil {
		t = &codexThread{id: id, dir: c.server.dir, env: map[string]string{}, model: "gpt-5.5", policy: "on-request",
			sandbox: "read-only", context: map[string]string{}}
		c.all[id] = t
	}
	c.mu.Unlock()
	t.mu.Lock()
	if !t.subscribed {
		t.adjust(p)
	}
	t.subscribed = true
	t.unstable = string(p.Config["features.default_mode_request_user_input"]) == "true" &&
		string(p.Config["suppress_unstable_features_warning"]) != "true"
	t.mu.Unlock()
	if info, err := os.Stat(t.dir); err != nil || !info.IsDir() {
		c.server.refuse(in, -32600, "cwd is no directory: "+t.dir)
		return
	}
	c.server.reply(in, obj("thread", obj("id", id, "status", obj("type", "idle"), "cwd", t.dir), "model", t.model,
		"approvalPolicy", t.policy, "reasoningEffort", nil))
}

func (p threadParams) prompt() string {
	var text string
	for _, part := range p.Input {
		text += part.Text
	}
	return text
}

// start starts a turn. If a turn of the thread is running, it sends the prompt into that turn.
func (c *codexThreads) start(in rpcLine, t *codexThread, p threadParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != "" {
		t.more = append(t.more, steeredIn{p.prompt(), p.ClientMessage})
		c.server.reply(in, obj("turn", obj("id", t.turn, "status", "inProgress")))
		return
	}
	t.adjust(p)
	ctx, cancel := context.WithCancelCause(c.server.life)
	t.turn, t.cancel = newThreadID(), cancel
	sink := &liveSink{threads: c, thread: t, turn: t.turn}
	c.server.reply(in, obj("turn", obj("id", t.turn, "status", "inProgress")))
	if t.unstable { // the real Codex may print this warning earlier
		t.unstable = false
		c.notify("warning", obj("threadId", t.id, "message",
			"Under-development features enabled: default_mode_request_user_input."))
	}
	env := *c.server.process
	env.dir = t.dir
	env.environ = append([]string{}, c.server.environ...)
	for name, value := range t.env {
		env.environ = append(env.environ, name+"="+value)
	}
	turn := &codexTurn{
		process: &env, args: codexArgs{sandbox: t.sandbox}, ctx: ctx, sink: sink, thread: t.id, spareTools: true,
		live: sink,
	}
	go c.play(turn, sink, p.prompt())
}

func (c *codexThreads) play(turn *codexTurn, sink *liveSink, prompt string) {
	code := turn.run(prompt)
	switch {
	case sink.over:
	case context.Cause(turn.ctx) != nil:
		sink.completed("interrupted", nil)
	default:
		select {
		case c.exit <- code:
		case <-c.server.life.Done():
		}
	}
}

func (c *codexThreads) steer(in rpcLine, t *codexThread, p threadParams) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn == "" || t.turn != p.ExpectedTurnID {
		c.server.refuse(in, -32600, "no active turn to steer")
		return
	}
	t.more = append(t.more, steeredIn{p.prompt(), p.ClientMessage})
	c.server.reply(in, obj("turnId", t.turn))
}

func (c *codexThreads) interrupt(in rpcLine, t *codexThread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn == "" {
		c.server.refuse(in, -32600, "no active turn to interrupt")
		return
	}
	t.more = nil // after an interrupt, Codex loses the prompts that the client sent during the turn
	c.server.reply(in, obj())
	t.cancel(errInterrupted)
}

// clean kills the commands that outlived an interrupted turn. Like Codex, it misses child processes that have left the
// process group of the command.
func (t *codexThread) clean() {
	t.mu.Lock()
	left := t.left
	t.left = nil
	t.mu.Unlock()
	for _, l := range left {
		l.kill()
	}
}

// ask sends a request to the client and waits for the answer. If ctx is done first, it returns nil.
func (c *codexThreads) ask(ctx context.Context, method string, params json.RawMessage, thread string) json.RawMessage {
	c.mu.Lock()
	id := obj("n", c.asked)[len(`{"n":`):]
	id = id[:len(id)-1]
	c.asked++
	came := make(chan json.RawMessage, 1)
	c.waiting[string(id)] = came
	c.mu.Unlock()
	c.server.out.line(obj("method", method, "id", id, "params", params))
	var answer json.RawMessage
	select {
	case answer = <-came:
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, string(id))
		c.mu.Unlock()
	}
	c.notify("serverRequest/resolved", obj("threadId", thread, "requestId", id))
	return answer
}

// deliverAnswer passes the client's answer to the goroutine that waits for it. It ignores an answer to an unknown
// request.
func (c *codexThreads) deliverAnswer(id, result json.RawMessage) {
	c.mu.Lock()
	came := c.waiting[string(id)]
	delete(c.waiting, string(id))
	c.mu.Unlock()
	if came != nil {
		came <- result
	}
}

func (c *codexThreads) notify(method string, params json.RawMessage) {
	c.server.out.line(obj("method", method, "params", params, "emittedAtMs", time.Now().UnixMilli()))
}
