package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// version is the protocol version that Call uses. The tools do not depend on the version.
const version = "2025-06-18"

// Call calls a tool of ductor and returns its text. If the tool fails, Call returns the text as an error.
func (r *Relay) Call(ctx context.Context, tool string, args map[string]any) (string, error) {
	toRelay, in := io.Pipe()
	out, fromRelay := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := r.Run(ctx, toRelay, fromRelay)
		_ = fromRelay.CloseWithError(errors.Join(err, io.EOF)) // makes a waiting call of request return
		ended <- err
	}()
	defer func() {
		_, _ = in.Close(), out.Close() // closing a pipe never fails
		<-ended
	}()
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, MaxLine)
	if _, err := request(in, answers, 1, "initialize", map[string]any{
		"protocolVersion": version, "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "ductor", "version": "1"},
	}); err != nil {
		return "", err
	}
	if err := writeMessage(in, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return "", err
	}
	result, err := request(in, answers, 2, "tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return "", err
	}
	var got struct {
		Failed  bool `json:"isError"`
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", tool, err)
	}
	var texts []string
	for _, c := range got.Content {
		texts = append(texts, c.Text)
	}
	text := strings.Join(texts, "\n")
	if got.Failed {
		return "", errors.New(text)
	}
	return text, nil
}

func writeMessage(in io.Writer, message any) error {
	raw, err := json.Marshal(message)
	if err == nil {
		_, err = in.Write(append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("call a tool: %w", err)
	}
	return nil
}

// request sends a request and returns the result in the response.
func request(in io.Writer, answers *bufio.Scanner, id int, method string, params any) (json.RawMessage, error) {
	if err := writeMessage(in, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for answers.Scan() {
		var got struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch err := json.Unmarshal(answers.Bytes(), &got); {
		case err != nil || got.ID != id: // not the response, but for example a notification
		case got.Error != nil:
			return nil, errors.New(got.Error.Message)
		default:
			return got.Result, nil
		}
	}
	return nil, errors.New("ductor ended the connection before it answered")
}
