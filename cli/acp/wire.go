package acp

import "encoding/json"

// protocolVersion is the version of the protocol that is spoken.
const protocolVersion = 1

// The methods of an agent.
const (
	methodInitialize = "initialize"
	methodLogin      = "authenticate"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodClose      = "session/close"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodSetMode    = "session/set_mode"
	methodSetModel   = "session/set_model"
)

// The methods of a client.
const (
	methodUpdate        = "session/update"
	methodAsk           = "session/request_permission"
	methodCancelRequest = "$/cancel_request"
	methodRead          = "fs/read_text_file"
	methodWrite         = "fs/write_text_file"
	methodTerminal      = "terminal/create"
	methodOutput        = "terminal/output"
	methodWait          = "terminal/wait_for_exit"
	methodKill          = "terminal/kill"
	methodRelease       = "terminal/release"
)

// The codes of the protocol.
const (
	codeNoFile = -32002
	codeNoAuth = -32000
)

// none is a result that holds nothing.
type none struct{}

type initializeParams struct {
	ProtocolVersion    int          `json:"protocolVersion"`
	ClientCapabilities capabilities `json:"clientCapabilities"`
	ClientInfo         clientInfo   `json:"clientInfo"`
}

type capabilities struct {
	FS       fsCapabilities `json:"fs"`
	Terminal bool           `json:"terminal"`
}

type fsCapabilities struct {
	Read  bool `json:"readTextFile"`
	Write bool `json:"writeTextFile"`
}

type clientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type initialized struct {
	ProtocolVersion int `json:"protocolVersion"`
	AgentInfo       struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	AuthMethods []struct {
		Name string `json:"name"`
	} `json:"authMethods"`
	Capabilities agentCapabilities `json:"agentCapabilities"`
}

type agentCapabilities struct {
	Load   bool `json:"loadSession"`
	Prompt struct {
		Image bool `json:"image"`
	} `json:"promptCapabilities"`
	Session struct {
		Resume *none `json:"resume"`
		Close  *none `json:"close"`
		Dirs   *none `json:"additionalDirectories"`
	} `json:"sessionCapabilities"`
}

type newParams struct {
	SessionID string            `json:"sessionId,omitempty"` // of load and resume
	Dir       string            `json:"cwd"`
	Dirs      []string          `json:"additionalDirectories,omitempty"`
	MCP       []json.RawMessage `json:"mcpServers"`
}

type newSession struct {
	SessionID string      `json:"sessionId"`
	Modes     *modeState  `json:"modes"`
	Models    *modelState `json:"models"`
}

type modeState struct {
	Current   string     `json:"currentModeId"`
	Available []modeInfo `json:"availableModes"`
}

type modeInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type modelState struct {
	Current   string      `json:"currentModelId"`
	Available []modelInfo `json:"availableModels"`
}

type modelInfo struct {
	ID          string `json:"modelId"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

type promptParams struct {
	SessionID string  `json:"sessionId"`
	Prompt    []block `json:"prompt"`
}

// block is a piece of content; which fields count depends on Type.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mimeType,omitempty"`
	Data string `json:"data,omitempty"`
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// words is the content as text; what is no text is named.
func (b block) words() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return b.URI
	case "":
		return ""
	}
	return "[" + b.Type + "]"
}

type sessionParams struct {
	SessionID string `json:"sessionId"`
}

type loginParams struct {
	MethodID string `json:"methodId"`
}

type modeParams struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

type modelParams struct {
	SessionID string `json:"sessionId"`
	ModelID   string `json:"modelId"`
}

// prompted is the reply that ends a turn.
type prompted struct {
	StopReason string      `json:"stopReason"`
	Usage      *tokenUsage `json:"usage"`
	Meta       struct {
		Quota *quota `json:"quota"`
	} `json:"_meta"`
}

type tokenUsage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	Thought    int64 `json:"thoughtTokens"`
	CacheRead  int64 `json:"cachedReadTokens"`
	CacheWrite int64 `json:"cachedWriteTokens"`
}

// quota is how Gemini counts.
type quota struct {
	Tokens quotaTokens `json:"token_count"`
	Models []struct {
		Model  string      `json:"model"`
		Tokens quotaTokens `json:"token_count"`
	} `json:"model_usage"`
}

type quotaTokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

type updateParams struct {
	SessionID string          `json:"sessionId"`
	Update    json.RawMessage `json:"update"`
}

// The kinds of update that are read.
const (
	updateMessage = "agent_message_chunk"
	updateThought = "agent_thought_chunk"
	updateTool    = "tool_call"
	updateToolNow = "tool_call_update"
	updatePlan    = "plan"
	updateUsage   = "usage_update"
	updateMode    = "current_mode_update"
	updateOffers  = "available_commands_update"
)

// update is what happens in a session; which fields count depends on Kind.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"` // of a chunk, where the agent says
	Content   json.RawMessage `json:"content"`   // a block, or a list of tool contents
	Entries   []planEntry     `json:"entries"`
	ModeID    string          `json:"currentModeId"`
	toolCall
}

type planEntry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// toolCall is a tool call, or what changed of it: then nil fields are as they were.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     *string         `json:"title"`
	ToolKind  *string         `json:"kind"`
	Status    *string         `json:"status"`
	Locations []location      `json:"locations"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
}

type location struct {
	Path string `json:"path"`
}

// The states of a tool.
const (
	statusDone   = "completed"
	statusFailed = "failed"
)

// toolContent is a piece of what a tool shows.
type toolContent struct {
	Type    string          `json:"type"` // content, diff or terminal
	Content json.RawMessage `json:"content"`
	Path    string          `json:"path"`
	OldText *string         `json:"oldText"`
	NewText string          `json:"newText"`
	Meta    struct {
		Kind string `json:"kind"`
	} `json:"_meta"`
	TerminalID string `json:"terminalId"`
}

type askParams struct {
	SessionID string      `json:"sessionId"`
	Options   []askOption `json:"options"`
	ToolCall  askedTool   `json:"toolCall"`
}

type askedTool struct {
	toolCall
	Content json.RawMessage `json:"content"`
}

type askOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// The kinds of option. The lasting ones are never picked.
const (
	optionAllow  = "allow_once"
	optionReject = "reject_once"
)

type askResult struct {
	Outcome outcome `json:"outcome"`
}

type outcome struct {
	Outcome  string `json:"outcome"` // selected or cancelled
	OptionID string `json:"optionId,omitempty"`
}

func selected(option string) askResult { return askResult{outcome{"selected", option}} }

func cancelled() askResult { return askResult{outcome{Outcome: "cancelled"}} }

type cancelRequestParams struct {
	RequestID json.RawMessage `json:"requestId"`
}
