package agent

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// newUUID creates a random version 4 UUID. It need not be unpredictable, but must be fast.
func newUUID() string {
	var b [16]byte
	a, z := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		b[i], b[8+i] = byte(a>>(8*i)), byte(z>>(8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// modelTotals contains the usage since the start of the process, which Claude reports in each result.
type modelTotals struct {
	tokens tokens
	cost   float64
}

// Usage and cost of one response of the model, if the script sets none.
const (
	inputTokens  = 1200
	outputTokens = 42
	inputPrice   = 5e-6
	outputPrice  = 25e-6
)

func usageJSON(t tokens) json.RawMessage {
	return obj("input_tokens", t.Input, "cache_creation_input_tokens", 0, "cache_read_input_tokens", t.Cached,
		"output_tokens", t.Output,
		"server_tool_use", obj("web_search_requests", 0, "web_fetch_requests", 0), "service_tier", "standard",
		"cache_creation", obj("ephemeral_1h_input_tokens", 0, "ephemeral_5m_input_tokens", 0),
		"inference_geo", "", "iterations", []string{}, "speed", "standard")
}

func messageUsage(output int) json.RawMessage {
	return obj("input_tokens", inputTokens, "cache_creation_input_tokens", 0, "cache_read_input_tokens", 0,
		"output_tokens", output, "service_tier", "standard")
}

func (c *claude) modelUsageJSON() json.RawMessage {
	t := c.total.tokens
	if t == (tokens{}) {
		return obj()
	}
	return obj(c.currentModel(), obj("inputTokens", t.Input, "outputTokens", t.Output,
		"cacheReadInputTokens", t.Cached, "cacheCreationInputTokens", 0, "webSearchRequests", 0,
		"costUSD", c.total.cost, "contextWindow", 1000000, "maxOutputTokens", 64000))
}

func (c *claude) initEvent() json.RawMessage {
	tools := []string{"Task", "Bash", "Edit", "NotebookEdit", "Read", "Skill", "TaskOutput", "TaskStop", "WebFetch",
		"WebSearch", "Write"}
	if c.args.promptTool == "stdio" {
		tools = append(tools, "AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
	}
	return obj("type", "system", "subtype", "init", "cwd", c.dir, "session_id", c.id, "tools", tools,
		"mcp_servers", []string{}, "model", c.currentModel(), "permissionMode", c.currentMode(),
		"slash_commands", []string{"clear", "compact", "context", "usage"}, "apiKeySource", "ANTHROPIC_API_KEY",
		"claude_code_version", claudeVersion, "output_style", "default",
		"agents", []string{"claude", "Explore", "general-purpose", "Plan"}, "skills", []string{}, "plugins", []string{},
		"analytics_disabled", true, "product_feedback_disabled", true, "uuid", newUUID(),
		"memory_paths", obj("auto", c.store.root+"/memory/"), "fast_mode_state", "off")
}

// systemEvent returns a system event. kv alternates the names and values of additional fields.
func (c *claude) systemEvent(subtype string, kv ...any) json.RawMessage {
	all := append([]any{"type", "system", "subtype", subtype}, kv...)
	return obj(append(all, "uuid", newUUID(), "session_id", c.id)...)
}

// streamEvent returns an event of the model's API, wrapped as Claude Code prints it.
func (c *claude) streamEvent(event json.RawMessage, kv ...any) json.RawMessage {
	all := []any{"type", "stream_event", "event", event, "session_id", c.id, "parent_tool_use_id", nil, "uuid",
		newUUID()}
	return obj(append(all, kv...)...)
}

// deltaEvent encodes a delta. It does not use package json, because deltas are the most frequent events.
func (c *claude) deltaEvent(buf []byte, index int, kind, field, text string) []byte {
	buf = append(buf[:0], `{"type":"stream_event","event":{"type":"content_block_delta","index":`...)
	buf = strconv.AppendInt(buf, int64(index), 10)
	buf = append(buf, `,"delta":{"type":"`...)
	buf = append(buf, kind...)
	buf = append(buf, `","`...)
	buf = append(buf, field...)
	buf = append(buf, `":`...)
	buf = appendJSON(buf, text)
	buf = append(buf, `}},"session_id":"`...)
	buf = append(buf, c.id...)
	buf = append(buf, `","parent_tool_use_id":null,"uuid":"`...)
	buf = append(buf, newUUID()...)
	return append(buf, `"}`...)
}

// userEvent returns a message with the role user. Such a message contains the result of a tool, or a notice.
func (c *claude) userEvent(content any, kv ...any) json.RawMessage {
	all := []any{"type", "user", "message", obj("role", "user", "content", content), "parent_tool_use_id", nil,
		"session_id", c.id, "uuid", newUUID(), "timestamp", timestamp()}
	return obj(append(all, kv...)...)
}

// syntheticEvent returns a message with the role assistant that Claude Code wrote itself, for example about an API
// error.
func (c *claude) syntheticEvent(text, errorName string) json.RawMessage {
	kv := []any{"type", "assistant", "message", obj("id", newUUID(), "container", nil, "model", "<synthetic>",
		"role", "assistant", "stop_details", nil, "stop_reason", "stop_sequence", "stop_sequence", "",
		"type", "message", "usage", obj("input_tokens", 0, "output_tokens", 0, "cache_creation_input_tokens", 0,
			"cache_read_input_tokens", 0, "server_tool_use", obj("web_search_requests", 0, "web_fetch_requests", 0),
			"service_tier", nil, "cache_creation", obj("ephemeral_1h_input_tokens", 0, "ephemeral_5m_input_tokens", 0),
			"inference_geo", nil, "iterations", nil, "speed", nil),
		"content", []json.RawMessage{obj("type", "text", "text", text)}, "context_management", nil),
		"parent_tool_use_id", nil, "session_id", c.id, "uuid", newUUID()}
	if errorName != "" {
		kv = append(kv, "error", errorName)
	}
	return obj(kv...)
}

// resultText returns the text that Claude prints for a result event if the output format is text.
func resultText(result []byte) string {
	var r struct {
		Result string   `json:"result"`
		Errors []string `json:"errors"`
	}
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	if r.Result == "" && len(r.Errors) > 0 {
		return r.Errors[0]
	}
	return r.Result
}
