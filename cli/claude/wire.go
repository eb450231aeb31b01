package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"ductor/cli"
)

const (
	agent        cli.Agent   = "claude"
	defaultModel cli.ModelID = "default" // Claude's name for its default
)

// line is one line of Claude's output. It contains only the fields that ductor uses.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
	// Parent is the ID of the tool call that started the sub-agent. It is empty for a line of the main agent.
	Parent string `json:"parent_tool_use_id"`

	Event     *streamEvent `json:"event"`            // only in stream_event lines
	Abandoned *struct{}    `json:"abandoned_blocks"` // only in message_stop events; set if Claude repeats the message

	Message    *message        `json:"message"` // only in assistant and user lines
	ToolResult json.RawMessage `json:"tool_use_result"`
	IsReplay   bool            `json:"isReplay"`
	// RefusalRetry is set if a filter stopped the message with the ID RefusedID, and Claude repeats its request to the
	// model.
	RefusalRetry bool   `json:"refusal_retry"`
	RefusedID    string `json:"refused_message_id"`

	Model        string      `json:"model"` // only in system/init lines
	APIKeySource string      `json:"apiKeySource"`
	MCPServers   []mcpServer `json:"mcp_servers"`

	Status  *string          `json:"status"` // only in system/status and system/task_notification lines
	TaskID  string           `json:"task_id"`
	Summary string           `json:"summary"` // only in system/task_notification lines
	Mode    string           `json:"permissionMode"`
	Compact *compactMetadata `json:"compact_metadata"`
	Content string           `json:"content"` // only in system/model_fallback lines

	Attempt      int     `json:"attempt"` // only in system/api_retry lines
	MaxRetries   int     `json:"max_retries"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  *int    `json:"error_status"`
	Error        string  `json:"error"` // only in system/api_retry and assistant lines

	RateLimit *rateLimit `json:"rate_limit_info"`

	RequestID string          `json:"request_id"` // only in control_request lines
	Request   *controlRequest `json:"request"`
	Response  *controlReply   `json:"response"` // only in control_response lines

	resultFields
}

type resultFields struct {
	IsError        bool                  `json:"is_error"`
	APIErrorStatus *int                  `json:"api_error_status"`
	Result         string                `json:"result"`
	NumTurns       int                   `json:"num_turns"`
	StopReason     string                `json:"stop_reason"`
	TotalCostUSD   float64               `json:"total_cost_usd"` // cost since the start of the process
	Usage          *tokenUsage           `json:"usage"`          // usage in this turn
	ModelUsage     map[string]modelUsage `json:"modelUsage"`     // usage since the start of the process
	Denials        []wireDenial          `json:"permission_denials"`
	Terminal       string                `json:"terminal_reason"`
	Errors         []string              `json:"errors"`
	Origin         *origin               `json:"origin"`
}

type streamEvent struct {
	Type    string   `json:"type"`
	Index   int      `json:"index"`
	Message *message `json:"message"`       // only in message_start events
	Block   *block   `json:"content_block"` // only in content_block_start events
	Delta   *delta   `json:"delta"`

	Usage *tokenUsage `json:"usage"` // only in message_delta events
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
	Content json.RawMessage `json:"content"` // a string, or a list of blocks
	Usage   *tokenUsage     `json:"usage"`
}

// blocks returns the message's content blocks. A string becomes one block of text.
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
	ID        string          `json:"id"` // only in tool_use blocks
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // only in tool_result blocks
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type compactMetadata struct {
	PreTokens  int `json:"pre_tokens"`
	PostTokens int `json:"post_tokens"`
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
	Window     int64 `json:"contextWindow"`
}

type wireDenial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// origin describes why Claude started a turn itself.
type origin struct {
	Kind string `json:"kind"`
}

// controlRequest is a request that Claude makes during a turn.
type controlRequest struct {
	Subtype   string          `json:"subtype"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Reason    string          `json:"decision_reason"`
	Blocked   string          `json:"blocked_path"`
}

// controlReply is Claude's answer to a request of ductor.
type controlReply struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Error     string          `json:"error"`
	Response  json.RawMessage `json:"response"`
}

// controlLine returns a control request as a line with a newline. request must contain the subtype.
func controlLine(id string, request map[string]any) []byte {
	return jsonLine(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// subtype returns a control request without parameters.
func subtype(name string) map[string]any { return map[string]any{"subtype": name} }

// denyLine returns the line that denies a can_use_tool request. The model reads the message and continues.
func denyLine(requestID, message string) []byte {
	return replyLine(map[string]any{
		"subtype": "success", "request_id": requestID,
		"response": map[string]any{"behavior": "deny", "message": message},
	})
}

// allowLine returns the line that allows a can_use_tool request. The tool runs with this input.
func allowLine(requestID string, input json.RawMessage) []byte {
	if len(input) == 0 || !json.Valid(input) {
		input = json.RawMessage("{}")
	}
	return replyLine(map[string]any{
		"subtype": "success", "request_id": requestID,
		"response": map[string]any{"behavior": "allow", "updatedInput": input},
	})
}

// unsupportedLine returns the line that rejects an unknown control request.
func unsupportedLine(requestID, subtype string) []byte {
	return replyLine(map[string]any{
		"subtype": "error", "request_id": requestID,
		"error": fmt.Sprintf("control request %q is not supported here", subtype),
	})
}

func replyLine(response map[string]any) []byte {
	return jsonLine(map[string]any{"type": "control_response", "response": response})
}

// jsonLine encodes v as a line with a newline. v must consist of strings, numbers, JSON, maps and slices, so that
// encoding cannot fail.
func jsonLine(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("claude: encoding a protocol line: %v", err))
	}
	return append(b, '\n')
}

// decoder decodes the lines of Claude's output. A turn has thousands of stream events, so the decoder reuses memory for
// them. A result of decode is valid only until the next call.
type decoder struct {
	line  line
	event streamEvent
	delta delta
}

// decode decodes one line. It leaves a field of an unexpected type empty, and decodes the other fields.
func (d *decoder) decode(raw []byte) (*line, error) {
	if d.piece(raw) {
		return &d.line, nil
	}
	return decodeWhole(raw)
}

func decodeWhole(raw []byte) (*line, error) {
	var l line
	if err := tolerant(json.Unmarshal(raw, &l)); err != nil {
		return nil, err
	}
	return &l, nil
}

// tolerant returns nil for an error about the type of a field, because all other fields were decoded.
func tolerant(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return nil
	}
	return err
}

// The layout in which Claude Code writes a piece of a streamed block:
//
//	{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"…"}},
//	 "session_id":"…","parent_tool_use_id":null,"uuid":"…"}
//
// Since 2.1.332 the API's ID of the message follows the UUID:
//
//	"uuid":"…","api_message_id":"msg_…"}
const (
	pieceHead    = `{"type":"stream_event","event":{"type":"content_block_delta","index":`
	pieceDelta   = `,"delta":{"type":"`
	pieceSession = `}},"session_id":"`
	pieceParent  = `","parent_tool_use_id":null,"uuid":"`
	pieceMessage = `","api_message_id":"`
	pieceEnd     = `"}`
)

// piece decodes raw into d if raw consists of the constants above with values between them. A value cannot contain one
// of these constants, because quotes in values are escaped.
func (d *decoder) piece(raw []byte) bool {
	rest, ok := bytes.CutPrefix(raw, []byte(pieceHead))
	if !ok {
		return false
	}
	index, rest, _ := bytes.Cut(rest, []byte(pieceDelta))
	rest, tail, _ := bytes.Cut(rest, []byte(pieceSession))
	session, tail, _ := bytes.Cut(tail, []byte(pieceParent))
	uuid, whole := bytes.CutSuffix(tail, []byte(pieceEnd))
	uuid, message, _ := bytes.Cut(uuid, []byte(pieceMessage))
	number, err := strconv.Atoi(string(index))
	if !whole || err != nil || number < 0 || strconv.Itoa(number) != string(index) || !plain(session) || !plain(uuid) || !plain(message) {
		return false
	}
	d.delta = delta{}
	kind, quoted, _ := bytes.Cut(rest, []byte(`":`))
	switch string(kind) {
	case `text_delta","text`:
		d.delta.Type = "text_delta"
		ok = unquote(quoted, &d.delta.Text)
	case `thinking_delta","thinking`:
		d.delta.Type = "thinking_delta"
		ok = unquote(quoted, &d.delta.Thinking)
	case `input_json_delta","partial_json`:
		d.delta.Type = "input_json_delta"
		ok = unquote(quoted, &d.delta.PartialJSON)
	default:
		return false
	}
	if string(session) != d.line.SessionID {
		d.line.SessionID = string(session)
	}
	d.event = streamEvent{Type: "content_block_delta", Index: number, Delta: &d.delta}
	d.line.Type, d.line.Event = "stream_event", &d.event
	return ok
}

// plain reports whether b may appear unescaped in a JSON string.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}

// unquote decodes a JSON string.
func unquote(quoted []byte, text *string) bool {
	if n := len(quoted); n >= 2 && quoted[0] == '"' && quoted[n-1] == '"' && plain(quoted[1:n-1]) {
		*text = string(quoted[1 : n-1])
		return true
	}
	return len(quoted) > 0 && quoted[0] == '"' && utf8.Valid(quoted) && json.Unmarshal(quoted, text) == nil
}

// storedNote is the JSON of a note. Its format must not change, because a newer version of ductor may continue a turn
// that this version started.
type storedNote struct {
	snapshot
	messages
}
