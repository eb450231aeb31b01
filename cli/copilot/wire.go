package copilot

import (
	"encoding/json"
	"fmt"
)

// event is a session event, or the result line that ends a one-shot run.
type event struct {
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
	AgentID string          `json:"agentId"` // set on events of a sub-agent

	SessionID string `json:"sessionId"` // result
	ExitCode  *int   `json:"exitCode"`  // result
}

// The event types that mean something here. There are 130 and more will come: the others are passed over.
const (
	evSessionStart   = "session.start"
	evSessionResume  = "session.resume"
	evModelChange    = "session.model_change"
	evUserMessage    = "user.message"
	evTurnStart      = "assistant.turn_start"
	evTurnRetry      = "assistant.turn_retry"
	evMessageStart   = "assistant.message_start"
	evMessageDelta   = "assistant.message_delta"
	evMessage        = "assistant.message"
	evReasoningDelta = "assistant.reasoning_delta"
	evReasoning      = "assistant.reasoning"
	evUsage          = "assistant.usage"
	evToolStart      = "tool.execution_start"
	evToolEnd        = "tool.execution_complete"
	evCompactStart   = "session.compaction_start"
	evCompactEnd     = "session.compaction_complete"
	evWarning        = "session.warning"
	evError          = "session.error"
	evAbort          = "abort"
	evIdle           = "session.idle"
	evResult         = "result"

	evPermissionAsked = "permission.requested"
	evPermissionDone  = "permission.completed"
	evInputAsked      = "user_input.requested"
	evInputDone       = "user_input.completed"
	evPlanDone        = "exit_plan_mode.completed"
)

// fields are those of all the events above; which count depends on the type.
type fields struct {
	MessageID     string        `json:"messageId"`
	Delta         string        `json:"deltaContent"`
	Content       string        `json:"content"`
	Model         string        `json:"model"`
	SelectedModel string        `json:"selectedModel"`
	NewModel      string        `json:"newModel"`
	ReasoningText string        `json:"reasoningText"`
	ToolRequests  []toolRequest `json:"toolRequests"`

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
	Reason     string `json:"reason"`

	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens"`

	Trigger   string `json:"trigger"`
	PreTokens int    `json:"preCompactionTokens"`

	RequestID      string          `json:"requestId"`
	Permission     json.RawMessage `json:"permissionRequest"`
	Prompt         json.RawMessage `json:"promptRequest"`
	ResolvedByHook bool            `json:"resolvedByHook"`
	Question       string          `json:"question"`
}

type toolRequest struct {
	ID string `json:"toolCallId"`
}

type toolResult struct {
	Content  string `json:"content"`
	Detailed string `json:"detailedContent"`
}

type toolError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// fileEdit is a change that a file tool made.
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

// known says whether events of a type are read at all.
func known(kind string) bool {
	switch kind {
	case evSessionStart, evSessionResume, evModelChange, evUserMessage, evTurnStart, evTurnRetry, evMessageStart,
		evMessageDelta, evMessage, evReasoningDelta, evReasoning, evUsage, evToolStart, evToolEnd, evCompactStart,
		evCompactEnd, evWarning, evError, evAbort, evIdle, evResult, evPermissionAsked, evPermissionDone,
		evInputAsked, evInputDone, evPlanDone:
		return true
	}
	return false
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
