package acp

import (
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/rpc"
)

// protocolVersion is the version of the protocol that ductor speaks.
const protocolVersion = 1

// Methods that ductor calls on the agent.
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
	methodSetOption  = "session/set_config_option"
	methodList       = "session/list"
	methodDelete     = "session/delete"
)

// Methods that the agent calls on ductor.
const (
	methodUpdate        = "session/update"
	methodAsk           = "session/request_permission"
	methodCancelRequest = "$/cancel_request" // ductor sends this notification to the agent, too
	methodElicit        = "elicitation/create"
	methodElicited      = "elicitation/complete"
)

// Error codes of the protocol.
const (
	codeNoAuth = -32000
	codeCancel = -32800 // the request was cancelled
)

type none struct{}

type initialized struct {
	ProtocolVersion int `json:"protocolVersion"`
	AgentInfo       struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	AuthMethods  authMethods `json:"authMethods"`
	Capabilities struct {
		Load   bool `json:"loadSession"`
		Prompt struct {
			Image bool `json:"image"`
		} `json:"promptCapabilities"`
		MCP struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
		Session struct {
			Resume *none `json:"resume"`
			Close  *none `json:"close"`
			List   *none `json:"list"`
			Delete *none `json:"delete"`
			Dirs   *none `json:"additionalDirectories"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
}

// sessionParams are the parameters of requests that concern a session or a log-in.
type sessionParams struct {
	SessionID string           `json:"sessionId,omitempty"`
	Dir       string           `json:"cwd,omitempty"` // Dir, Dirs, MCP and Meta are for creating or loading a session
	Dirs      []string         `json:"additionalDirectories,omitempty"`
	MCP       []any            `json:"mcpServers,omitzero"` // mcpServer or httpServer; nil if no session is created
	Meta      any              `json:"_meta,omitempty"`
	ModeID    string           `json:"modeId,omitempty"`
	ModelID   string           `json:"modelId,omitempty"`
	MethodID  string           `json:"methodId,omitempty"` // the log-in method, for methodLogin
	Prompt    []toolcall.Block `json:"prompt,omitempty"`
}

// mcpServer is an MCP server that the agent starts as a program.
type mcpServer struct {
	Name    string        `json:"name"`
	Command string        `json:"command"`
	Args    []string      `json:"args"`
	Env     []mcpVariable `json:"env"`
}

// httpServer is an MCP server that the agent reaches by its URL.
type httpServer struct {
	Type    string        `json:"type"`
	Name    string        `json:"name"`
	URL     string        `json:"url"`
	Headers []mcpVariable `json:"headers"`
}

type mcpVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type gotSession struct {
	SessionID string        `json:"sessionId"`
	Options   configOptions `json:"configOptions"`
	Modes     *struct {     // older agents send Modes and Models instead of Options
		Current   string       `json:"currentModeId"`
		Available configValues `json:"availableModes"`
	} `json:"modes"`
	Models *struct {
		Current   string       `json:"currentModelId"`
		Available configValues `json:"availableModels"`
	} `json:"models"`
}

// prompted is the response to a prompt.
type prompted struct {
	StopReason string `json:"stopReason"`
	Usage      *struct {
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		Thought    int64 `json:"thoughtTokens"`
		CacheRead  int64 `json:"cachedReadTokens"`
		CacheWrite int64 `json:"cachedWriteTokens"`
	} `json:"usage"`
	Meta json.RawMessage `json:"_meta"`
}

type updateParams struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

// Kinds of updates.
const (
	updateMessage = "agent_message_chunk"
	updateThought = "agent_thought_chunk"
	updateTool    = "tool_call"
	updateToolNow = "tool_call_update"
	updatePlan    = "plan"
	updateUsage   = "usage_update"
	updateMode    = "current_mode_update"
	updateOffers  = "available_commands_update"
	updateOptions = "config_option_update"
	updateInfo    = "session_info_update" // contains the session's title
)

// update is an event of a session. Kind determines which of the other fields are used.
type update struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"` // ID of the message to which the text belongs, if the agent sends one
	Entries   []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	ModeID  string        `json:"currentModeId"`
	Options configOptions `json:"configOptions"`
	Used    int64         `json:"used"` // for updateUsage: number of tokens in the context
	Size    int64         `json:"size"`
	Cost    struct {
		Amount   float64 `json:"amount"` // cost of the session so far
		Currency string  `json:"currency"`
	} `json:"cost"`
	Commands []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Input       *struct {
			Hint string `json:"hint"`
		} `json:"input"`
	} `json:"availableCommands"`
	toolcall.Call
	titled bool // whether an updateInfo contains the field title, even if its value is null
}

func (u *update) commands() []cli.AgentCommand {
	var list []cli.AgentCommand
	for _, c := range u.Commands {
		own := cli.AgentCommand{Name: "/" + strings.TrimPrefix(c.Name, "/"), Description: c.Description}
		if c.Input != nil {
			own.Arguments = c.Input.Hint
		}
		list = append(list, own)
	}
	return list
}

type askParams struct {
	SessionID string        `json:"sessionId"`
	Options   []askOption   `json:"options"`
	ToolCall  toolcall.Call `json:"toolCall"`
}

type askOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// Kinds of options. ductor never chooses an option that the agent would remember permanently.
const (
	optionAllow  = "allow_once"
	optionReject = "reject_once"
)

type askResult struct {
	Outcome outcome           `json:"outcome"`
	Answers map[string]string `json:"answers,omitempty"` // answers to questions, in Qwen Code's format
}

type outcome struct {
	Outcome  string `json:"outcome"` // selected or cancelled
	OptionID string `json:"optionId,omitempty"`
}

func selected(option string) askResult { return askResult{Outcome: outcome{"selected", option}} }

func cancelled() askResult { return askResult{Outcome: outcome{Outcome: "cancelled"}} }

// overParams identifies a request of the agent that needs no answer any more. Either the agent withdrew the request
// (RequestID), or the request asked the user to visit a web page and the visit has ended (VisitID).
type overParams struct {
	RequestID json.RawMessage `json:"requestId"`
	VisitID   string          `json:"elicitationId"`
}

func (o *overParams) ends(a *ask) bool {
	return rpc.Text(a.id) == rpc.Text(o.RequestID) || a.form != nil && o.VisitID != "" && a.form.VisitID == o.VisitID
}
