package agent

import (
	"encoding/json"
	"os"
	"strconv"
)

type rpcLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// appServer runs `codex app-server`. It handles JSON-RPC messages, one on each line, until standard input ends.
func (p *process) appServer() int {
	s := &server{process: p}
	s.threads = newCodexThreads(s)
	input := p.readLines()
	for {
		select {
		case line, ok := <-input:
			if !ok {
				return 0
			}
			s.take(line)
		case code := <-s.threads.exit:
			return code
		case sig := <-p.signals:
			if sig == os.Interrupt {
				return 130
			}
			return 0
		}
	}
}

// server handles the requests of one client.
type server struct {
	*process
	ready   bool
	threads *codexThreads
}

func (s *server) take(line []byte) {
	var in rpcLine
	if json.Unmarshal(line, &in) != nil || len(in.ID) == 0 {
		return // no answer to notifications and invalid lines
	}
	switch {
	case in.Method == "":
		s.threads.deliverAnswer(in.ID, in.Result)
	case in.Method == "initialize":
		s.initialize(in)
	case !s.ready:
		s.refuse(in, -32600, "Not initialized")
	case in.Method == "model/list":
		s.modelList(in)
	case in.Method == "account/read":
		s.reply(in, obj("account", obj("type", "apiKey"), "requiresOpenaiAuth", false))
	case s.threads.take(in):
	default:
		s.refuse(in, -32600, "Invalid request: unknown variant `"+in.Method+
			"`, expected one of `initialize`, `model/list`, `account/read`")
	}
}

func (s *server) reply(in rpcLine, result json.RawMessage) {
	s.out.line(obj("id", in.ID, "result", result))
}

func (s *server) refuse(in rpcLine, code int, message string) {
	s.out.line(obj("id", in.ID, "error", obj("code", code, "message", message)))
}

func (s *server) initialize(in rpcLine) {
	var params struct {
		ClientInfo struct{ Name, Version string } `json:"clientInfo"`
	}
	if json.Unmarshal(in.Params, &params) != nil || params.ClientInfo.Name == "" {
		s.refuse(in, -32600, "Invalid request: missing field `clientInfo`")
		return
	}
	if s.ready {
		s.refuse(in, -32600, "Already initialized")
		return
	}
	s.ready = true
	home := s.env["CODEX_HOME"]
	if home == "" {
		home = s.env["HOME"] + "/.codex"
	}
	c := params.ClientInfo
	s.reply(in, obj("userAgent", c.Name+"/"+codexVersion+" (Scripted; x86_64) dumb ("+c.Name+"; "+c.Version+")",
		"codexHome", home, "platformFamily", "unix", "platformOs", "linux"))
	s.out.line(obj("method", "remoteControl/status/changed", "params", obj("status", "disabled",
		"serverName", "host", "installationId", newUUID(), "environmentId", nil), "emittedAtMs", 0))
}

// modelList answers with a page of models. The cursor is the number of models on earlier pages.
func (s *server) modelList(in rpcLine) {
	var params struct {
		Limit  int    `json:"limit"`
		Cursor string `json:"cursor"`
	}
	if len(in.Params) > 0 && json.Unmarshal(in.Params, &params) != nil {
		s.refuse(in, -32600, "Invalid request: invalid type in params")
		return
	}
	all := codexModels()
	from := 0
	if params.Cursor != "" {
		n, err := strconv.Atoi(params.Cursor)
		if err != nil || n < 0 || n > len(all) {
			s.refuse(in, -32600, "invalid cursor: "+params.Cursor)
			return
		}
		from = n
	}
	to := len(all)
	var next any
	if params.Limit > 0 && from+params.Limit < len(all) {
		to = from + params.Limit
		next = strconv.Itoa(to)
	}
	s.reply(in, obj("data", all[from:to], "nextCursor", next))
}

func codexModels() []json.RawMessage {
	effort := func(name, text string) json.RawMessage { return obj("reasoningEffort", name, "description", text) }
	efforts := []json.RawMessage{
		effort("low", "Fast responses with lighter reasoning"),
		effort("medium", "Balances speed and reasoning depth for everyday tasks"),
		effort("high", "Greater reasoning depth for complex problems"),
		effort("xhigh", "Extra high reasoning depth for complex problems"),
	}
	model := func(id, name, description string, hidden, isDefault bool) json.RawMessage {
		return obj("id", id, "model", id, "upgrade", nil, "displayName", name, "description", description,
			"hidden", hidden, "supportedReasoningEfforts", efforts, "defaultReasoningEffort", "medium",
			"inputModalities", []string{"text", "image"}, "supportsPersonality", false, "isDefault", isDefault)
	}
	return []json.RawMessage{
		model("gpt-6.1-sol", "GPT-6.1-Sol", "Latest workhorse model for coding and everyday work.", false, true),
		model("gpt-6-astra", "GPT-6-Astra", "Frontier intelligence for the most demanding work.", false, false),
		model("gpt-5.6-sol", "GPT-5.6-Sol", "Previous generation workhorse model.", false, false),
		model("gpt-internal", "Internal", "A model that menus do not show.", true, false),
	}
}
