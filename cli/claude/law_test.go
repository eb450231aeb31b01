package claude

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// In whatever order Claude's lines come, the events of a turn fulfil their contract.
func TestAnyOrderOfLinesKeepsTheContract(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := newMemory()
		k := newHeardTurn(rt, mem)
		for range rapid.IntRange(0, 60).Draw(rt, "lines") {
			if _, end := k.p.line([]byte(anyLine(rt))); end {
				k.finish()
				k = newHeardTurn(rt, mem)
			}
		}
		k.finish()
	})
}

func anyLine(t *rapid.T) string {
	id := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "message")
	tool := rapid.SampledFrom([]string{"t1", "t2"}).Draw(t, "tool")
	index := rapid.IntRange(0, 2).Draw(t, "index")
	text := rapid.SampledFrom([]string{"", "é", "one", "one two", "日本"}).Draw(t, "text")
	parent := rapid.SampledFrom([]string{"null", `"t1"`}).Draw(t, "parent")
	stream := func(event string) string {
		return fmt.Sprintf(`{"type":"stream_event","session_id":"S","parent_tool_use_id":%s,"event":%s}`, parent, event)
	}
	whole := func(block string) string {
		return fmt.Sprintf(`{"type":"assistant","session_id":"S","parent_tool_use_id":%s,"message":{"id":%q,"model":"M","content":[%s]}}`, parent, id, block)
	}
	return rapid.SampledFrom([]string{
		initLine,
		`{"type":"system","subtype":"status","session_id":"S","status":"compacting"}`,
		`{"type":"system","subtype":"status","session_id":"S","status":null}`,
		`{"type":"system","subtype":"api_retry","session_id":"S","attempt":1,"error_status":529}`,
		stream(fmt.Sprintf(`{"type":"message_start","message":{"id":%q}}`, id)),
		stream(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, index)),
		stream(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"Bash"}}`, index, tool)),
		stream(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, index, text)),
		stream(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"thinking_delta","thinking":%q}}`, index, text)),
		stream(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}`, index)),
		stream(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)),
		stream(`{"type":"message_stop"}`),
		whole(fmt.Sprintf(`{"type":"text","text":%q}`, text)),
		whole(fmt.Sprintf(`{"type":"thinking","thinking":%q}`, text)),
		whole(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Edit","input":{"file_path":"/x"}}`, tool)),
		fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":false}]}}`, tool, text),
		fmt.Sprintf(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":%q}}`, tool),
		backgroundResult,
		`{"type":"user","isReplay":true,"uuid":"E","message":{"content":"hi"}}`,
		doneLine,
		`{"type":"result","is_error":true,"result":"API Error: 500","session_id":"S"}`,
	}).Draw(t, "line")
}
