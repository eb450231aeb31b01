package modelapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// chatRequest contains the fields of a request to POST /v1/chat/completions that the server uses.
type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Stream   bool          `json:"stream"`
	Effort   string        `json:"reasoning_effort"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// chatCompletions handles POST /v1/chat/completions. OpenCode and Qwen Code use it.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-request-id", newID("req_"))
	var in chatRequest
	rec := Request{API: Chat, Method: r.Method, Path: r.URL.Path, Status: http.StatusOK}
	c, err := s.readChat(r, &in, &rec)
	if err != nil {
		s.refuseResponses(w, rec, err)
		return
	}
	out := &chatWire{c: c, model: in.Model, id: newID("chatcmpl-"), w: w, tellUsage: in.Options.Usage,
		counted: defaultUsage()}
	if len(c.tools) == 0 && isTitleRequest(rec.System) {
		s.record(rec)
		end(errors.Join(out.text("Scripted title"), out.finish("")))
		return
	}
	if st, ok := s.firstError(c); ok {
		rec.Status = st
	}
	s.record(rec)
	end(s.play(r.Context(), c, out))
}

// isTitleRequest reports whether the CLI only wants a title for its session.
func isTitleRequest(system string) bool { return strings.Contains(system, "title generator") }

// readChat reads and checks a request. It records in rec every field that it can read, even if the request is invalid.
func (s *Server) readChat(r *http.Request, in *chatRequest, rec *Request) (conversation, error) {
	body, err := readBody(r, in)
	rec.Body = body
	if err == nil {
		err = s.admit(r, in.Model, "messages", len(in.Messages) > 0)
	}
	if err != nil {
		return conversation{}, err
	}
	c := conversation{session: "chat", stream: in.Stream}
	for i, t := range in.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return conversation{}, bad("Missing required parameter: 'tools[%d].function.name'.", i)
		}
		c.tools = append(c.tools, t.Function.Name)
	}
	images, system, err := walkChat(in.Messages, &c)
	if err != nil {
		return conversation{}, err
	}
	rec.Model, rec.Prompt, rec.Position, rec.System = in.Model, c.prompt, c.position, system
	rec.Effort, rec.Tools, rec.Images, rec.Stream = in.Effort, c.tools, images, in.Stream
	return c, nil
}

// walkChat checks the messages of a request and finds the user's prompts. It also counts the results of tools after the
// newest prompt.
func walkChat(messages []chatMessage, c *conversation) (images []Image, system string, err error) {
	open := map[string]bool{}
	var rules []string
	for i, m := range messages {
		texts, pictures, err := chatContent(m.Content)
		if err != nil {
			return nil, "", bad("Invalid type for 'messages[%d].content': %v", i, err)
		}
		if m.Role != "tool" && len(open) > 0 {
			return nil, "", bad("An assistant message with 'tool_calls' must be followed by tool messages responding " +
				"to each 'tool_call_id'.")
		}
		switch m.Role {
		case "system", "developer":
			rules = append(rules, texts...)
		case "user":
			// addTexts returns false if the CLI wrote the whole message, for example to get the rest of an answer. Such
			// a message is not a prompt.
			if addTexts(c, texts) {
				images, c.items = pictures, i+1
			}
		case "assistant":
			for _, call := range m.ToolCalls {
				open[call.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				return nil, "", bad("Invalid parameter: messages with role 'tool' must be a response to a preceding " +
					"message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
			c.position++
		default:
			return nil, "", bad("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', and 'tool'.",
				m.Role)
		}
	}
	for id := range open {
		return nil, "", bad("No tool output found for function call %s.", id)
	}
	return images, strings.Join(rules, "\n"), nil
}

// chatContent parses message content that is null, a string or a list of parts.
func chatContent(raw json.RawMessage) (texts []string, images []Image, err error) {
	var text *string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		if text != nil {
			texts = append(texts, *text)
		}
		return texts, nil, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil, nil, errors.New("expected an array of objects or a string")
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image_url":
			head, data, _ := strings.Cut(p.ImageURL.URL, ";base64,")
			images = append(images, Image{MIME: strings.TrimPrefix(head, "data:"), Data: data})
		}
	}
	return texts, images, nil
}
