package claude

import (
	"encoding/json"
	"fmt"
)

// controlRequest is what Claude asks of us in mid-turn.
type controlRequest struct {
	Subtype   string          `json:"subtype"`
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Reason    string          `json:"decision_reason"`
	Blocked   string          `json:"blocked_path"`
}

// controlReply is Claude's answer to a request of ours.
type controlReply struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Error     string          `json:"error"`
	Response  json.RawMessage `json:"response"`
}

// controlLine is a request of ours, one line with its newline. request has its subtype.
func controlLine(id string, request map[string]any) []byte {
	return jsonLine(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// subtype is a request that has nothing but its name.
func subtype(name string) map[string]any { return map[string]any{"subtype": name} }

// denyLine answers can_use_tool with no. The model sees the message and goes on.
func denyLine(requestID, message string) []byte {
	return replyLine(map[string]any{
		"subtype": "success", "request_id": requestID,
		"response": map[string]any{"behavior": "deny", "message": message},
	})
}

// allowLine answers can_use_tool with yes. The tool runs with input.
func allowLine(requestID string, input json.RawMessage) []byte {
	if len(input) == 0 || !json.Valid(input) {
		input = json.RawMessage("{}")
	}
	return replyLine(map[string]any{
		"subtype": "success", "request_id": requestID,
		"response": map[string]any{"behavior": "allow", "updatedInput": input},
	})
}

// unsupportedLine answers a control request that we do not know.
func unsupportedLine(requestID, subtype string) []byte {
	return replyLine(map[string]any{
		"subtype": "error", "request_id": requestID,
		"error": fmt.Sprintf("control request %q is not supported here", subtype),
	})
}

func replyLine(response map[string]any) []byte {
	return jsonLine(map[string]any{"type": "control_response", "response": response})
}

// jsonLine encodes v with a newline. v is made of strings, numbers, JSON, maps and slices of them, which always encode.
func jsonLine(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("claude: encoding a protocol line: %v", err))
	}
	return append(b, '\n')
}
