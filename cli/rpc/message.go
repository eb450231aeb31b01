package rpc

import (
	"encoding/json"
	"fmt"
	"strconv"

	"ductor/cli"
)

// Message is a message from the program to ductor. With an ID and a Method, it is a request. With only a Method, it is
// a notification. Otherwise it is a response.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"` // a string or a number, as the program wrote it
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	// End is the offset after the message in the program's output.
	End int64 `json:"-"`
}

// hasID reports whether the message has an ID. A null ID counts as missing.
func (m Message) hasID() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// Asks reports whether the message is a request.
func (m Message) Asks() bool { return m.Method != "" && m.hasID() }

// Read decodes a response into result, unless result is nil. If the program rejected the request, the error wraps an
// *Error. agent and method appear in errors.
func (m Message) Read(agent cli.Agent, method string, result any) error {
	if m.Error != nil {
		return fmt.Errorf("%s: %w", method, m.Error)
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		f := cli.Failf(cli.BadOutput, agent, "failure.other-answer", method)
		f.Detail, f.Cause = cli.Shorten(string(m.Result), 1000), err
		return f
	}
	return nil
}

// Text returns the ID of a message as text, without the quotes of a string.
func Text(id json.RawMessage) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		return s
	}
	return string(id)
}

// Error codes of JSON-RPC.
const (
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeBadParams      = -32602
	CodeInternal       = -32603
)

// Error is the error in the response to a rejected request.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error. It prefers the text in Data, where some programs put the message.
func (e *Error) Error() string {
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
	}
	if json.Unmarshal(e.Data, &data) == nil {
		for _, s := range []string{data.Details, data.Message} {
			if s != "" {
				return s
			}
		}
	}
	var words string
	if json.Unmarshal(e.Data, &words) == nil && words != "" {
		return e.Message + ": " + words
	}
	if e.Message == "" {
		return "error " + strconv.Itoa(e.Code)
	}
	return e.Message
}
