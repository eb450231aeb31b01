package agent

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// acpLine is a line of the Agent Client Protocol.
type acpLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// acpServer is the process `gemini --acp`. It has many sessions, each with at most one running turn. A single goroutine
// reads the input.
type acpServer struct {
	*process
	args     geminiArgs
	sessions map[string]*acpSession
	exits    chan int

	mu      sync.Mutex
	next    int
	waiting map[string]chan json.RawMessage // for each request ID, receives the client's answer
}

type acpSession struct {
	id, dir, mode, model string
	effort               string                  // value of the session option for the effort; see SIM_ACP
	brave                bool                    // value of the boolean session option; see SIM_ACP
	cancel               context.CancelCauseFunc // cancels the running turn; nil if none runs
	done                 chan struct{}           // closed when the running turn has ended
}

// geminiACP handles requests until standard input ends.
func (p *process) geminiACP(a geminiArgs) int {
	s := &acpServer{process: p, args: a, sessions: map[string]*acpSession{}, exits: make(chan int, 1),
		waiting: map[string]chan json.RawMessage{}}
	input := p.readLines()
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
		s.deliverAnswer(in)
		return
	}
	switch in.Method {
	case "initialize":
		s.initialize(in)
	case "authenticate":
		s.authenticate(in)
	case "session/new":
		s.newSession(in)
	case "session/load", "session/resume":
		s.loadSession(in)
	case "session/prompt":
		s.prompt(in)
	case "session/cancel":
		if session := s.session(in); session != nil && session.cancel != nil {
			session.cancel(errInterrupted)
		}
	case "session/set_mode", "session/set_model", "session/set_config_option":
		s.choose(in)
	case "session/list":
		s.listSessions(in)
	case "session/delete":
		s.deleteSession(in)
	case "session/close":
		s.reply(in, obj())
	default:
		s.refuse(in, -32601, `"Method not found": `+in.Method, "")
	}
}

// deliverAnswer passes the client's response to the goroutine that sent the request.
func (s *acpServer) deliverAnswer(in acpLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(in.ID)
	if ch := s.waiting[id]; ch != nil {
		delete(s.waiting, id)
		ch <- in.Result
	}
}

// reply answers a request. It does nothing for a notification.
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
	s.out.line(obj("jsonrpc", "2.0", "method", "session/update", "params",
		obj("sessionId", session, "update", obj(kv...))))
}

// ask sends a request to the client and waits for the result. If the process ends first, it returns nil.
func (s *acpServer) ask(method string, params json.RawMessage) json.RawMessage {
	select {
	case result := <-s.send(method, params):
		return result
	case <-s.life.Done():
		return nil
	}
}

// send sends a request to the client. The returned channel receives the result.
func (s *acpServer) send(method string, params json.RawMessage) <-chan json.RawMessage {
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
	methods := json.RawMessage(`[{"id":"gemini-api-key","name":"Gemini API key",` +
		`"description":"Use an API key with Gemini Developer API"}]`)
	if own := s.env[methodsVar]; own != "" {
		methods = json.RawMessage(own)
	}
	if s.beforeHello() {
		return
	}
	s.reply(in, obj("protocolVersion", s.acpNumber("version", 1), "authMethods", methods,
		"agentInfo", obj("name", or(s.env["SIM_ACP_NAME"], "gemini-cli"), "title", "Gemini CLI", "version",
			geminiVersion),
		"agentCapabilities", obj("loadSession", true, "sessionCapabilities", s.abilities(),
			"promptCapabilities", obj("image", true, "audio", true, "embeddedContext", true),
			"mcpCapabilities", obj("http", true, "sse", true))))
}

// methodsVar names the environment variable that contains the agent's log-in methods as JSON. If the variable is set, a
// session requires a log-in with one of these methods. The method "hangs" never answers, and the method "fails" returns
// an error.
const methodsVar = "SIM_ACP_METHODS"

func (s *acpServer) authenticate(in acpLine) {
	var p struct {
		Method string `json:"methodId"`
	}
	switch _ = json.Unmarshal(in.Params, &p); p.Method {
	case "hangs":
	case "fails":
		s.refuse(in, -32603, "The browser was closed", "")
	default:
		s.env[methodsVar] = ""
		s.reply(in, obj())
	}
}

type acpNew struct {
	SessionID string             `json:"sessionId"`
	Dir       string             `json:"cwd"`
	MCP       *[]json.RawMessage `json:"mcpServers"`
}

// opening parses a request that creates or loads a session. For an invalid request, it sends an error to the client and
// returns false.
func (s *acpServer) opening(in acpLine) (acpNew, bool) {
	var p acpNew
	switch {
	case json.Unmarshal(in.Params, &p) != nil || p.Dir == "" || p.MCP == nil:
		s.refuse(in, -32602, "Invalid params", "cwd and mcpServers are required")
	case s.env["GEMINI_API_KEY"] == "" && !s.hasGeminiLogin(), s.env[methodsVar] != "":
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
	session := s.begin(newUUID(), p.Dir)
	s.reply(in, obj(append([]any{"sessionId", session.id}, s.state(session)...)...))
	s.commands(session)
}

func (s *acpServer) commands(session *acpSession) {
	s.update(session.id, "sessionUpdate", "available_commands_update",
		"availableCommands", []json.RawMessage{obj("name", "memory", "description", "Manage memory.")})
}

func (s *acpServer) begin(id, dir string) *acpSession {
	session := &acpSession{id: id, dir: dir, mode: "default", model: s.args.model}
	if s.acpHas("options") != "" {
		session.mode, session.model, session.effort = "build", "model-1", "low"
	}
	s.sessions[id] = session
	return session
}

func (s *acpServer) state(a *acpSession) []any {
	if s.acpHas("options") != "" {
		return []any{"configOptions", s.options(a)}
	}
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

// replayAfter is the pause between the answer to session/load and the replay of the session.
const replayAfter = 20 * time.Millisecond

// loadSession loads a session. Like Gemini, it answers first and then replays the session.
func (s *acpServer) loadSession(in acpLine) {
	p, ok := s.opening(in)
	if !ok {
		return
	}
	if !s.store.has(geminiFolder(p.Dir), p.SessionID) {
		s.refuse(in, -32603, "Internal error", geminiNoSession(p.SessionID))
		return
	}
	session := s.begin(p.SessionID, p.Dir)
	s.reply(in, obj(s.state(session)...))
	if in.Method == "session/resume" {
		return
	}
	time.Sleep(replayAfter)
	for _, e := range s.store.read(geminiFolder(p.Dir), p.SessionID) {
		s.update(session.id, "sessionUpdate", "user_message_chunk", "content", obj("type", "text", "text", e.Prompt))
		s.update(session.id, "sessionUpdate", "agent_message_chunk", "content", obj("type", "text", "text", "replayed"))
	}
	s.commands(session)
}

// session returns the session that a request names. If the session does not exist, it sends an error to the client and
// returns nil.
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

// choose changes the mode or the model of a session. If SIM_ACP contains "options", the agent supports only the method
// session/set_config_option for this. Otherwise it supports only the methods for modes and models.
func (s *acpServer) choose(in acpLine) {
	options := s.acpHas("options") != ""
	switch {
	case options != (in.Method == "session/set_config_option"):
		s.refuse(in, -32601, `"Method not found": `+in.Method, "")
	case options:
		s.setOption(in)
	case in.Method == "session/set_mode":
		s.setMode(in)
	default:
		s.setModel(in)
	}
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
