package copilot

import (
	"encoding/json"
	"fmt"
)

// event is an event of a session, or the result line at the end of a process for one turn.
type event struct {
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
	AgentID string          `json:"agentId"` // set for events of a sub-agent

	SessionID string `json:"sessionId"` // set if the type is "result"
	ExitCode  *int   `json:"exitCode"`  // set if the type is "result"
}

// fields contains the data of an event. The event's type determines which fields are used.
type fields struct {
	MessageID     string `json:"messageId"`
	Delta         string `json:"deltaContent"`
	Content       string `json:"content"`
	Model         string `json:"model"`
	SelectedModel string `json:"selectedModel"`
	NewModel      string `json:"newModel"`
	ReasoningText string `json:"reasoningText"`

	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	ToolTitle  string          `json:"toolTitle"`
	Parent     string          `json:"parentToolCallId"`
	Arguments  json.RawMessage `json:"arguments"`
	Success    bool            `json:"success"`
	Result     json.RawMessage `json:"result"`
	Error      json.RawMessage `json:"error"`
	Edits      []fileEdit      `json:"fileEdits"`
	Shell      *shellExecution `json:"shellExecution"`

	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode"`
	Failed     string `json:"failureKind"`
	Reason     string `json:"reason"`
	Finish     string `json:"finishReason"` // why the model ended its answer

	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens"`

	Server string          `json:"serverName"`
	Status json.RawMessage `json:"status"` // a string or an object

	PreTokens  int `json:"preCompactionTokens"`
	PostTokens int `json:"postCompactionTokens"`

	CurrentTokens int64 `json:"currentTokens"`
	TokenLimit    int64 `json:"tokenLimit"`
	SystemTokens  int64 `json:"systemTokens"`
	SaidTokens    int64 `json:"conversationTokens"`
	ToolTokens    int64 `json:"toolDefinitionsTokens"`

	RequestID      string          `json:"requestId"`
	Permission     json.RawMessage `json:"permissionRequest"`
	Prompt         json.RawMessage `json:"promptRequest"`
	ResolvedByHook bool            `json:"resolvedByHook"`
	Question       string          `json:"question"`
}

type toolResult struct {
	Content  string `json:"content"`
	Detailed string `json:"detailedContent"`
}

type toolError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

type fileEdit struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // create, edit, delete
}

type shellExecution struct {
	ExitCode *int `json:"exitCode"`
}

func decodeEvent(raw []byte) (event, error) {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("read event: %w", err)
	}
	if e.Type == "" {
		return e, fmt.Errorf("read event: it has no type")
	}
	return e, nil
}

func (e event) fields() (fields, error) {
	var f fields
	if len(e.Data) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return f, fmt.Errorf("read %s: %w", e.Type, err)
	}
	return f, nil
}

// permissionAsked contains the fields of a permission request. The kind determines which fields are used.
type permissionAsked struct {
	Kind       string           `json:"kind"`
	ToolCallID string           `json:"toolCallId"`
	Command    string           `json:"fullCommandText"`
	Intention  string           `json:"intention"`
	Warning    string           `json:"warning"`
	File       string           `json:"fileName"`
	Resolved   string           `json:"resolvedPath"`
	Diff       string           `json:"diff"`
	NewFile    string           `json:"newFileContents"`
	Path       string           `json:"path"`
	Paths      []string         `json:"paths"`
	Possible   []string         `json:"possiblePaths"`
	Server     string           `json:"serverName"`
	Tool       string           `json:"toolName"`
	Args       json.RawMessage  `json:"args"`
	ToolArgs   json.RawMessage  `json:"toolArgs"`
	URL        string           `json:"url"`
	Fact       string           `json:"fact"`
	Hook       string           `json:"hookMessage"`
	Managed    bool             `json:"managedApprovalRequired"`
	Redirects  bool             `json:"hasWriteFileRedirection"`
	Edits      []permissionEdit `json:"fileEdits"`
	Judge      struct {
		Recommendation string `json:"recommendation"`
	} `json:"assistedApproval"`
}

type permissionEdit struct {
	Before *fileState `json:"before"`
	After  *fileState `json:"after"`
}

// fileState is the content of a file before or after an edit.
type fileState struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// readPermission decodes a permission request. It ignores fields that it cannot decode.
func readPermission(f fields) permissionAsked {
	var asked, prompt permissionAsked
	_ = json.Unmarshal(f.Permission, &asked)
	_ = json.Unmarshal(f.Prompt, &prompt)
	if asked.Judge.Recommendation == "" {
		asked.Judge = prompt.Judge
	}
	if asked.Paths == nil {
		asked.Paths = prompt.Paths
	}
	return asked
}
