package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
)

// copilotRPC is a message of the protocol that Copilot's SDK uses.
type copilotRPC struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Model     string `json:"model"`
		ModelID   string `json:"modelId"`
		Mode      string `json:"mode"`
		Dir       string `json:"workingDirectory"`
		Prompt    string `json:"prompt"`
		RequestID string `json:"requestId"`
		Result    struct {
			Kind     string `json:"kind"`
			Feedback string `json:"feedback"`
		} `json:"result"`
	} `json:"params"`
}

// headlessCopilot is the process `copilot --headless --stdio`. It has many sessions for one client.
type headlessCopilot struct {
	*process
	exit chan int

	mu       sync.Mutex
	sessions map[string]*copilotSession
}

type copilotSession struct {
	server *headlessCopilot
	id     string
	dir    string
	model  string

	// The server's mutex guards the following fields.
	allowAll bool
	queue    []copilotMessage
	running  bool
	cancel   context.CancelCauseFunc
	asked    map[string]chan copilotDecision
}

type copilotMessage struct{ id, prompt string }

type copilotDecision struct {
	allow bool
	why   string
}

func (p *process) copilotServer() int {
	h := &headlessCopilot{process: p, exit: make(chan int, 1), sessions: map[string]*copilotSession{}}
	input := p.readFrames()
	for {
		select {
		case body, ok := <-input:
			if !ok {
				return 0
			}
			var in copilotRPC
			if json.Unmarshal(body, &in) == nil && in.Method != "" {
				h.take(in)
			}
		case code := <-h.exit:
			return code
		case s := <-p.signals:
			if s == os.Interrupt {
				return 130
			}
			return 0
		}
	}
}

func (h *headlessCopilot) reply(in copilotRPC, result json.RawMessage) {
	h.out.raw(frame(obj("jsonrpc", "2.0", "id", in.ID, "result", result)))
}

func (h *headlessCopilot) refuse(in copilotRPC, code int, message string) {
	h.out.raw(frame(obj("jsonrpc", "2.0", "id", in.ID, "error", obj("code", code, "message", message))))
}

func (h *headlessCopilot) take(in copilotRPC) {
	switch in.Method {
	case "connect":
		h.reply(in, obj("ok", true, "protocolVersion", 3, "version", copilotVersion))
	case "auth.getStatus":
		h.reply(in, obj("isAuthenticated", h.copilotLogin()))
	case "models.list":
		h.models(in)
	case "session.create", "session.resume":
		h.open(in)
	default:
		h.session(in)
	}
}

func (h *headlessCopilot) models(in copilotRPC) {
	if !h.copilotLogin() {
		h.refuse(in, -32603, "Request models.list failed with message: Not authenticated. Please authenticate first.")
		return
	}
	model := func(id, name string) json.RawMessage {
		return obj("id", id, "name", name, "vendor", "Scripted", "supportedReasoningEfforts",
			[]string{"low", "medium", "high"},
			"defaultReasoningEffort", "medium")
	}
	h.reply(in, obj("models", []json.RawMessage{model("gpt-5.2", "GPT-5.2"),
		model("claude-sonnet-4.6", "Claude Sonnet 4.6")}))
}

func (h *headlessCopilot) open(in copilotRPC) {
	id := in.Params.SessionID
	if in.Method == "session.resume" && !h.store.has(copilotFolder, id) {
		h.refuse(in, -32603, "Request session.resume failed with message: Failed to load session events: Session not found: "+id)
		return
	}
	s := &copilotSession{
		server: h, id: id, dir: or(in.Params.Dir, h.dir), model: or(in.Params.Model, "gpt-5.2"),
		asked: map[string]chan copilotDecision{},
	}
	h.mu.Lock()
	h.sessions[id] = s
	h.mu.Unlock()
	s.event("session.start", obj("sessionId", id, "version", 1, "producer", "copilot-agent", "copilotVersion",
		copilotVersion,
		"selectedModel", s.model), false)
	h.reply(in, obj("sessionId", id, "isRemote", false, "mode", "interactive", "modelState", obj("modelId", s.model)))
}

func (h *headlessCopilot) session(in copilotRPC) {
	h.mu.Lock()
	s := h.sessions[in.Params.SessionID]
	h.mu.Unlock()
	if s == nil {
		if len(in.Method) > 8 && in.Method[:8] == "session." {
			h.refuse(in, -32603, "Request "+in.Method+" failed with message: Session not found for sessionId: "+
				in.Params.SessionID)
			return
		}
		h.refuse(in, -32601, "Unhandled method "+in.Method)
		return
	}
	switch in.Method {
	case "session.send":
		m := copilotMessage{newUUID(), in.Params.Prompt}
		h.reply(in, obj("messageId", m.id))
		s.send(m)
	case "session.abort":
		s.abort()
		h.reply(in, obj("success", true))
	case "session.mode.set", "session.permissions.configure":
		h.reply(in, obj("success", true))
	case "session.permissions.setMode":
		h.mu.Lock()
		s.allowAll = in.Params.Mode == "allow-all"
		h.mu.Unlock()
		h.reply(in, obj("success", true, "mode", in.Params.Mode))
	case "session.permissions.handlePendingPermissionRequest":
		h.reply(in, obj("success", s.deliverDecision(in)))
	case "session.model.switchTo":
		h.mu.Lock()
		s.model = in.Params.ModelID
		h.mu.Unlock()
		h.reply(in, obj("status", "applied", "deferred", false, "modelId", in.Params.ModelID))
	case "session.destroy":
		s.abort()
		h.mu.Lock()
		delete(h.sessions, s.id)
		h.mu.Unlock()
		h.reply(in, obj("success", true))
	default:
		h.refuse(in, -32601, "Unhandled method "+in.Method)
	}
}

func (s *copilotSession) event(kind string, data json.RawMessage, ephemeral bool) {
	s.server.out.raw(frame(obj("jsonrpc", "2.0", "method", "session.event", "params",
		obj("sessionId", s.id, "event", copilotEvent(kind, data, ephemeral)))))
}

// send adds a message to the queue. If nothing is running, it starts the turn.
func (s *copilotSession) send(m copilotMessage) {
	h := s.server
	h.mu.Lock()
	defer h.mu.Unlock()
	s.queue = append(s.queue, m)
	if !s.running {
		s.running = true
		go s.drain()
	}
}

// drain runs the prompts in the queue, and then reports that the session is idle.
func (s *copilotSession) drain() {
	h := s.server
	aborted := false
	for {
		h.mu.Lock()
		if len(s.queue) == 0 || aborted {
			s.running, s.queue, s.cancel = false, nil, nil
			data := obj("mode", "interactive")
			if aborted {
				data = obj("aborted", true, "mode", "interactive")
			}
			s.event("session.idle", data, true)
			h.mu.Unlock()
			return
		}
		m := s.queue[0]
		s.queue = s.queue[1:]
		ctx, cancel := context.WithCancelCause(h.life)
		s.cancel = cancel
		p := *h.process
		p.dir = s.dir
		t := &copilotTurn{process: &p, ctx: ctx, session: s.id, id: m.id, model: s.model, emit: s.event, counts: true}
		h.mu.Unlock()
		t.ask = func(kind, call string, request json.RawMessage) (bool, string) { return s.ask(ctx, call, request) }
		err := t.run(m.prompt)
		cancel(nil)
		var exit exitError
		if errors.As(err, &exit) {
			select {
			case h.exit <- exit.code:
			case <-h.life.Done():
			}
			return
		}
		aborted = err != nil
	}
}

func (s *copilotSession) abort() {
	h := s.server
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.cancel != nil {
		s.cancel(errInterrupted)
	}
}

func (s *copilotSession) ask(ctx context.Context, call string, request json.RawMessage) (bool, string) {
	h := s.server
	h.mu.Lock()
	if s.allowAll {
		h.mu.Unlock()
		return true, ""
	}
	id, decided := newUUID(), make(chan copilotDecision, 1)
	s.asked[id] = decided
	h.mu.Unlock()
	s.event("permission.requested", obj("requestId", id, "permissionRequest", request, "agentMode", "interactive",
		"permissionMode", "manual"), false)
	d, result := copilotDecision{}, "cancelled"
	select {
	case d = <-decided:
		result = "denied-interactively-by-user"
		if d.allow {
			result = "approved"
		}
	case <-ctx.Done():
		h.mu.Lock()
		delete(s.asked, id)
		h.mu.Unlock()
	}
	s.event("permission.completed", obj("requestId", id, "toolCallId", call, "result", obj("kind", result)), false)
	return d.allow, d.why
}

// deliverDecision passes the client's decision to the goroutine that asked for it. It returns false if the request is
// unknown.
func (s *copilotSession) deliverDecision(in copilotRPC) bool {
	h := s.server
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := s.asked[in.Params.RequestID]
	delete(s.asked, in.Params.RequestID)
	if waits == nil {
		return false
	}
	why := "The user rejected this tool call."
	if f := in.Params.Result.Feedback; f != "" {
		why += " User feedback: " + f
	}
	waits <- copilotDecision{allow: in.Params.Result.Kind == "approve-once", why: why}
	return true
}
