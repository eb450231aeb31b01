package claude

import (
	"bytes"
	"encoding/json"
	"errors"
)

// line is one line of Claude's output. Only what is used is decoded; unknown fields and types pass.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
	// Parent is set for events of a sub-agent: the tool call that started it.
	Parent string `json:"parent_tool_use_id"`

	Event *streamEvent `json:"event"` // stream_event

	Message    *message        `json:"message"` // assistant, user
	ToolResult json.RawMessage `json:"tool_use_result"`
	IsReplay   bool            `json:"isReplay"`

	Model        string      `json:"model"` // system/init
	APIKeySource string      `json:"apiKeySource"`
	MCPServers   []mcpServer `json:"mcp_servers"`

	Status  *string          `json:"status"` // system/status, system/task_notification
	TaskID  string           `json:"task_id"`
	Mode    string           `json:"permissionMode"`
	Compact *compactMetadata `json:"compact_metadata"`
	Content string           `json:"content"` // system/model_fallback

	Attempt      int     `json:"attempt"` // system/api_retry
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  *int    `json:"error_status"`
	Error        string  `json:"error"` // also of assistant

	RateLimit *rateLimit `json:"rate_limit_info"`

	RequestID string          `json:"request_id"` // control_request
	Request   *controlRequest `json:"request"`
	Response  *controlReply   `json:"response"` // control_response

	resultFields
}

// resultFields are those of a result line.
type resultFields struct {
	IsError        bool                  `json:"is_error"`
	APIErrorStatus *int                  `json:"api_error_status"`
	Result         string                `json:"result"`
	NumTurns       int                   `json:"num_turns"`
	StopReason     string                `json:"stop_reason"`
	TotalCostUSD   float64               `json:"total_cost_usd"` // since the process began
	Usage          *tokenUsage           `json:"usage"`          // of this turn
	ModelUsage     map[string]modelUsage `json:"modelUsage"`     // since the process began
	Denials        []wireDenial          `json:"permission_denials"`
	Terminal       string                `json:"terminal_reason"`
	Errors         []string              `json:"errors"`
	Origin         *origin               `json:"origin"`
}

type streamEvent struct {
	Type    string   `json:"type"`
	Index   int      `json:"index"`
	Message *message `json:"message"`       // message_start
	Block   *block   `json:"content_block"` // content_block_start
	Delta   *delta   `json:"delta"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	PartialJSON string `json:"partial_json"`
}

type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"` // a string, or blocks
}

// blocks are the message's content blocks; a plain string counts as one block of text.
func (m *message) blocks() []block {
	var blocks []block
	if tolerant(json.Unmarshal(m.Content, &blocks)) == nil && len(blocks) > 0 {
		return blocks
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil && text != "" {
		return []block{{Type: "text", Text: text}}
	}
	return nil
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"` // tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // tool_result
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type compactMetadata struct {
	Trigger   string `json:"trigger"`
	PreTokens int    `json:"pre_tokens"`
}

type rateLimit struct {
	Status   string `json:"status"` // allowed, allowed_warning, rejected
	ResetsAt int64  `json:"resetsAt"`
}

type tokenUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type modelUsage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadInputTokens"`
	CacheWrite int64 `json:"cacheCreationInputTokens"`
}

type wireDenial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// origin says what began a turn that no message of ours began.
type origin struct {
	Kind string `json:"kind"`
}

// decodeLine reads one line. A field of an unexpected type is left empty; the rest is kept.
func decodeLine(raw []byte) (*line, error) {
	if bytes.HasPrefix(raw, []byte(`{"type":"stream_event",`)) {
		return decodeStream(raw)
	}
	var l line
	if err := tolerant(json.Unmarshal(raw, &l)); err != nil {
		return nil, err
	}
	return &l, nil
}

// decodeStream is decodeLine for the lines of which there are thousands a turn.
func decodeStream(raw []byte) (*line, error) {
	var l struct {
		Type      string       `json:"type"`
		SessionID string       `json:"session_id"`
		Parent    string       `json:"parent_tool_use_id"`
		Event     *streamEvent `json:"event"`
	}
	if err := tolerant(json.Unmarshal(raw, &l)); err != nil {
		return nil, err
	}
	return &line{Type: l.Type, SessionID: l.SessionID, Parent: l.Parent, Event: l.Event}, nil
}

// tolerant lets pass an error about one field's type: the other fields were decoded all the same.
func tolerant(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return nil
	}
	return err
}
