package gemini

import "encoding/json"

// event is one line of `gemini --output-format stream-json`.
type event struct {
	Type string `json:"type"`

	SessionID string `json:"session_id"` // only in init
	Model     string `json:"model"`

	Role    string `json:"role"` // only in message
	Content string `json:"content"`

	ToolName   string          `json:"tool_name"` // only in tool_use
	ToolID     string          `json:"tool_id"`   // only in tool_use and tool_result
	Parameters json.RawMessage `json:"parameters"`
	Status     string          `json:"status"` // only in tool_result and result: success or error
	Output     string          `json:"output"`
	Error      *eventError     `json:"error"`

	Message string `json:"message"` // only in error

	Stats *stats `json:"stats"` // only in result
}

type eventError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type stats struct {
	modelStats
	Models map[string]modelStats `json:"models"`
}

type modelStats struct {
	Input  int64 `json:"input_tokens"` // includes input from the cache
	Output int64 `json:"output_tokens"`
	Cached int64 `json:"cached"`
}

// Types of events.
const (
	eventInit    = "init"
	eventMessage = "message"
	eventToolUse = "tool_use"
	eventToolEnd = "tool_result"
	eventTrouble = "error"
	eventResult  = "result"
)
