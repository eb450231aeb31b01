package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// acpLine is a line of the Agent Client Protocol.
type acpLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// acpServer is `gemini --acp`: many sessions, each with at most one turn. Lines are taken by one goroutine.
type acpServer struct {
	*process
	args     geminiArgs
	sessions map[string]*acpSession
	exits    chan int

	mu      sync.Mutex
	next    int
	waiting map[string]chan json.RawMessage // requests of ours that wait for an answer
}

// acpSession is one session of the server.
type acpSession struct {
	id, dir, mode, model string
	cancel               context.CancelCauseFunc // of the turn that runs; nil if none does
	done                 chan struct{}           // closed when that turn is over
}

// geminiACP serves the protocol until standard input ends.
func (p *process) geminiACP(a geminiArgs) int {
	s := &acpServer{process: p, args: a, sessions: map[string]*acpSession{}, exits: make(chan int, 1), waiting: map[string]chan json.RawMessage{}}
	input := readLines(p.stdin)
	for {
		select {
		case line, ok := <-input:
			if !ok {
				return 0
			}
			s.take(line)
		case code := <-s.exits:
			return code
		case sig := <-p.signals:
			if sig == os.Interrupt {
				return 130
			}
			return 0
		}
	}
}

func (s *acpServer) take(line []byte) {
	var in acpLine
	if json.Unmarshal(line, &in) != nil {
		s.out.line(obj("jsonrpc", "2.0", "id", nil, "error", obj("code", -32700, "message", "Parse error")))
		return
	}
	if in.Method == "" {
		s.answered(in)
		return
	}
	switch in.Method {
	case "initialize":
		s.initialize(in)
	case "authenticate":
		s.reply(in, obj())
	case "session/new":
		s.newSession(in)
	case "session/load":
		s.loadSession(in)
	case "session/prompt":
		s.prompt(in)
	case "session/cancel":
		if session := s.session(in); session != nil && session.cancel != nil {
			session.cancel(errInterrupted)
		}
	case "session/set_mode":
		s.setMode(in)
	case "session/set_model":
		s.setModel(in)
	default:
		s.refuse(in, -32601, `"Method not found": `+in.Method, "")
	}
}

// answered gives a response to whoever waits for it.
func (s *acpServer) answered(in acpLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(in.ID)
	if ch := s.waiting[id]; ch != nil {
		delete(s.waiting, id)
		ch <- in.Result
	}
}

// reply answers a request; a notification gets no answer.
func (s *acpServer) reply(in acpLine, result json.RawMessage) {
	if len(in.ID) > 0 {
		s.out.line(obj("jsonrpc", "2.0", "id", in.ID, "result", result))
	}
}

func (s *acpServer) refuse(in acpLine, code int, message, details string) {
	if len(in.ID) == 0 {
		return
	}
	kv := []any{"code", code, "message", message}
	if details != "" {
		kv = append(kv, "data", obj("details", details))
	}
	s.out.line(obj("jsonrpc", "2.0", "id", in.ID, "error", obj(kv...)))
}

func (s *acpServer) update(session string, kv ...any) {
	s.out.line(obj("jsonrpc", "2.0", "method", "session/update", "params", obj("sessionId", session, "update", obj(kv...))))
}

// ask sends a request to the client; the channel gets its result.
func (s *acpServer) ask(method string, params json.RawMessage) <-chan json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strconv.Itoa(s.next)
	s.next++
	ch := make(chan json.RawMessage, 1)
	s.waiting[id] = ch
	s.out.line(obj("jsonrpc", "2.0", "id", json.RawMessage(id), "method", method, "params", params))
	return ch
}

func (s *acpServer) initialize(in acpLine) {
	var p struct {
		Version      *int            `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"clientCapabilities"`
	}
	if json.Unmarshal(in.Params, &p) != nil || p.Version == nil {
		s.refuse(in, -32602, "Invalid params", "protocolVersion is missing")
		return
	}
	s.reply(in, obj("protocolVersion", 1,
		"authMethods", []json.RawMessage{obj("id", "gemini-api-key", "name", "Gemini API key", "description", "Use an API key with Gemini Developer API")},
		"agentInfo", obj("name", "gemini-cli", "title", "Gemini CLI", "version", geminiVersion),
		"agentCapabilities", obj("loadSession", true,
			"promptCapabilities", obj("image", true, "audio", true, "embeddedContext", true),
			"mcpCapabilities", obj("http", true, "sse", true))))
}

type acpNew struct {
	SessionID string             `json:"sessionId"`
	Dir       string             `json:"cwd"`
	MCP       *[]json.RawMessage `json:"mcpServers"`
}

// opening reads what makes or loads a session; false if it was refused.
func (s *acpServer) opening(in acpLine) (acpNew, bool) {
	var p acpNew
	switch {
	case json.Unmarshal(in.Params, &p) != nil || p.Dir == "" || p.MCP == nil:
		s.refuse(in, -32602, "Invalid params", "cwd and mcpServers are required")
	case s.env["GEMINI_API_KEY"] == "" && !s.hasGeminiLogin():
		s.refuse(in, -32000, "Authentication required", "")
	default:
		return p, true
	}
	return p, false
}

func (s *acpServer) newSession(in acpLine) {
	p, ok := s.opening(in)
	if !ok {
		return
	}
	session := &acpSession{id: newUUID(), dir: p.Dir, mode: "default", model: s.args.model}
	s.sessions[session.id] = session
	s.reply(in, obj(append([]any{"sessionId", session.id}, session.state()...)...))
	s.commands(session)
}

func (s *acpServer) commands(session *acpSession) {
	s.update(session.id, "sessionUpdate", "available_commands_update",
		"availableCommands", []json.RawMessage{obj("name", "memory", "description", "Manage memory.")})
}

func (a *acpSession) state() []any {
	var modes, models []json.RawMessage
	for _, m := range acpModes() {
		modes = append(modes, obj("id", m, "name", m))
	}
	for _, m := range geminiModelNames() {
		models = append(models, obj("modelId", m, "name", m))
	}
	return []any{"modes", obj("availableModes", modes, "currentModeId", a.mode),
		"models", obj("availableModels", models, "currentModelId", a.model)}
}

func acpModes() []string { return []string{"default", "autoEdit", "yolo", "plan"} }

// loadSession replays the session after it answered, as Gemini does.
func (s *acpServer) loadSession(in acpLine) {
	p, ok := s.opening(in)
	if !ok {
		return
	}
	if !s.store.has(geminiFolder(p.Dir), p.SessionID) {
		s.refuse(in, -32603, "Internal error", geminiNoSession(p.SessionID))
		return
	}
	session := &acpSession{id: p.SessionID, dir: p.Dir, mode: "default", model: s.args.model}
	s.sessions[session.id] = session
	s.reply(in, obj(session.state()...))
	for _, e := range s.store.read(geminiFolder(p.Dir), p.SessionID) {
		s.update(session.id, "sessionUpdate", "user_message_chunk", "content", obj("type", "text", "text", e.Prompt))
		s.update(session.id, "sessionUpdate", "agent_message_chunk", "content", obj("type", "text", "text", "replayed"))
	}
	s.commands(session)
}

// session finds the session a request is about; nil if it was refused.
func (s *acpServer) session(in acpLine) *acpSession {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(in.Params, &p)
	session := s.sessions[p.SessionID]
	if session == nil {
		s.refuse(in, -32602, "Session not found: "+p.SessionID, "")
	}
	return session
}

func (s *acpServer) setMode(in acpLine) {
	session := s.session(in)
	var p struct {
		ModeID string `json:"modeId"`
	}
	_ = json.Unmarshal(in.Params, &p)
	switch {
	case session == nil:
	case !slices.Contains(acpModes(), p.ModeID):
		s.refuse(in, -32603, "Internal error", "Invalid or unavailable mode: "+p.ModeID)
	default:
		session.mode = p.ModeID
		s.reply(in, obj())
	}
}

func (s *acpServer) setModel(in acpLine) {
	session := s.session(in)
	var p struct {
		ModelID string `json:"modelId"`
	}
	_ = json.Unmarshal(in.Params, &p)
	switch {
	case session == nil:
	case !slices.Contains(geminiModelNames(), p.ModelID):
		s.refuse(in, -32603, "Internal error", "Model not found: "+p.ModelID)
	default:
		session.model = p.ModelID
		s.reply(in, obj())
	}
}

// prompt begins a turn; one that still runs is cancelled by it.
func (s *acpServer) prompt(in acpLine) {
	session := s.session(in)
	if session == nil {
		return
	}
	var p struct {
		Prompt []struct{ Type, Text, Data string } `json:"prompt"`
	}
	if json.Unmarshal(in.Params, &p) != nil || len(p.Prompt) == 0 {
		s.refuse(in, -32602, "Invalid params", "prompt is required")
		return
	}
	var words []string
	for _, b := range p.Prompt {
		if b.Type == "text" {
			words = append(words, b.Text)
		}
	}
	if session.cancel != nil {
		session.cancel(errInterrupted)
		<-session.done
	}
	prompt := strings.Join(words, "\n")
	if strings.HasPrefix(strings.TrimSpace(prompt), "/memory") {
		s.update(session.id, "sessionUpdate", "agent_message_chunk", "content", obj("type", "text", "text", "a command, not a prompt"))
		s.reply(in, obj("stopReason", "end_turn"))
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	session.cancel, session.done = cancel, make(chan struct{})
	mode := map[string]string{"autoEdit": "auto_edit"}[session.mode]
	t := &geminiTurn{process: s.inDir(session.dir), ctx: ctx, session: session.id, dir: session.dir, mode: or(mode, session.mode),
		sink: &acpSink{s: s, session: session.id}}
	go s.play(in, t, session.model, prompt, session.done)
}

// inDir is the process as tools of a session see it.
func (s *acpServer) inDir(dir string) *process {
	p := *s.process
	p.dir = dir
	return &p
}

func (s *acpServer) play(in acpLine, t *geminiTurn, model, prompt string, done chan struct{}) {
	defer close(done)
	err := t.run(prompt)
	var exit exitError
	var failure geminiFailure
	u := t.counted()
	count := obj("input_tokens", u.Input, "output_tokens", u.Output)
	switch {
	case errors.As(err, &exit):
		select {
		case s.exits <- exit.code:
		default:
		}
	case errors.As(err, &failure):
		s.refuse(in, failure.status, failure.message, "")
	case err != nil:
		s.reply(in, obj("stopReason", "cancelled"))
	default:
		s.reply(in, obj("stopReason", "end_turn", "_meta", obj("quota", obj("token_count", count,
			"model_usage", []json.RawMessage{obj("model", model, "token_count", count)}))))
	}
}

// acpSink tells of a turn by updates of its session.
type acpSink struct {
	s       *acpServer
	session string
}

func (k *acpSink) text(chunk string) {
	k.s.update(k.session, "sessionUpdate", "agent_message_chunk", "content", obj("type", "text", "text", chunk))
}

func (k *acpSink) think(chunk string) {
	k.s.update(k.session, "sessionUpdate", "agent_thought_chunk", "content", obj("type", "text", "text", chunk))
}

func (c geminiCall) acp(status string, content []json.RawMessage) []any {
	if content == nil {
		content = []json.RawMessage{}
	}
	locations := []json.RawMessage{}
	if c.path != "" {
		locations = append(locations, obj("path", c.path))
	}
	return []any{"toolCallId", c.id, "status", status, "title", c.title, "content", content, "locations", locations, "kind", c.kind}
}

func (c geminiCall) diff() []json.RawMessage {
	if c.path == "" {
		return nil
	}
	kind := "modify"
	if c.before == "" {
		kind = "add"
	}
	return []json.RawMessage{obj("type", "diff", "path", c.path, "oldText", c.before, "newText", c.body, "_meta", obj("kind", kind))}
}

func said(text string) []json.RawMessage {
	return []json.RawMessage{obj("type", "content", "content", obj("type", "text", "text", text))}
}

// permit waits for the answer even if the turn is cancelled meanwhile, as Gemini does.
func (k *acpSink) permit(ctx context.Context, c geminiCall) (bool, error) {
	content := c.diff()
	if content == nil {
		content = said("[current working directory] (Run a command)")
	}
	answer := <-k.s.ask("session/request_permission", obj("sessionId", k.session, "options", []json.RawMessage{
		obj("optionId", "proceed_always", "name", "Allow for this session", "kind", "allow_always"),
		obj("optionId", "proceed_once", "name", "Allow", "kind", "allow_once"),
		obj("optionId", "cancel", "name", "Reject", "kind", "reject_once"),
	}, "toolCall", obj(c.acp("pending", content)...)))
	var r struct {
		Outcome struct{ Outcome, OptionID string } `json:"outcome"`
	}
	if json.Unmarshal(bytes.TrimSpace(answer), &r) != nil {
		return false, context.Cause(ctx)
	}
	return strings.HasPrefix(r.Outcome.OptionID, "proceed"), context.Cause(ctx)
}

// toolStarted announces a call, unless it was asked for: then nothing is said before it ended.
func (k *acpSink) toolStarted(c geminiCall) {
	if !c.asked {
		k.s.update(k.session, append([]any{"sessionUpdate", "tool_call"}, c.acp("in_progress", nil)...)...)
	}
}

func (k *acpSink) toolEnded(c geminiCall) {
	content, status := c.diff(), "completed"
	switch {
	case c.failed != "":
		content, status = said(c.failed), "failed"
	case content == nil && c.output != "":
		content = said(c.output)
	}
	k.s.update(k.session, append([]any{"sessionUpdate", "tool_call_update"}, c.acp(status, content)...)...)
}

func (k *acpSink) longLine(n int) []byte {
	return obj("jsonrpc", "2.0", "method", "session/update", "params", obj("sessionId", k.session, "update",
		obj("sessionUpdate", "agent_thought_chunk", "content", obj("type", "text", "text", strings.Repeat("x", n)))))
}

var _ geminiSink = (*acpSink)(nil)
