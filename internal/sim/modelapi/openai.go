package modelapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"ductor/internal/sim/script"
)

// responsesRequest contains the fields of a request to POST /v1/responses that the server uses.
type responsesRequest struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions string          `json:"instructions"`
	Stream       bool            `json:"stream"`
	CacheKey     string          `json:"prompt_cache_key"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Tools []offer `json:"tools"`
}

// offer is a tool of the CLI that the model can call, or a namespace with such tools.
type offer struct {
	Type  string  `json:"type"`
	Name  string  `json:"name"`
	Tools []offer `json:"tools"`
}

type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"call_id"`
	// Tools is set in items of the type additional_tools, and in results of a search for tools.
	Tools  []offer         `json:"tools"`
	Search json.RawMessage `json:"arguments"`
}

// responses handles POST /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-request-id", newID("req_"))
	var in responsesRequest
	rec := Request{API: Responses, Method: r.Method, Path: r.URL.Path, Status: http.StatusOK}
	c, err := s.readResponses(r, &in, &rec)
	if err != nil {
		s.refuseResponses(w, rec, err)
		return
	}
	out := &responseWire{c: c, model: in.Model, id: newID("resp_"), events: events{w: w}, counted: defaultUsage()}
	if st, ok := s.firstError(c); ok {
		rec.Status = st
	}
	s.record(rec)
	end(s.play(r.Context(), c, out))
}

func (s *Server) refuseResponses(w http.ResponseWriter, rec Request, err error) {
	var no refusal
	if !errors.As(err, &no) {
		no = refusal{http.StatusInternalServerError, "server_error", err.Error()}
	}
	rec.Status = no.status
	s.record(rec)
	writeJSON(w, no.status, openAIError(no.kind, "", no.message))
}

func openAIError(kind, code, message string) map[string]any {
	e := map[string]any{"type": kind, "message": message, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return map[string]any{"error": e}
}

// readResponses reads and checks a request. It records in rec every field that it can read, even if the request is
// invalid.
func (s *Server) readResponses(r *http.Request, in *responsesRequest, rec *Request) (conversation, error) {
	body, err := readBody(r, in)
	rec.Body = body
	if err == nil {
		err = s.admit(r, in.Model, "input", len(in.Input) > 0)
	}
	if err != nil {
		return conversation{}, err
	}
	c := conversation{session: in.CacheKey, stream: in.Stream}
	if err := c.offer(in.Tools); err != nil {
		return conversation{}, err
	}
	images, system, err := walkInput(in.Input, &c)
	if err != nil {
		return conversation{}, err
	}
	rec.Model, rec.Session, rec.Prompt, rec.Position = in.Model, c.session, c.prompt, c.position
	rec.System = strings.TrimSpace(in.Instructions + "\n" + system)
	rec.Effort, rec.Tools, rec.Images, rec.Stream = in.Reasoning.Effort, c.tools, images, in.Stream
	return c, nil
}

// admit checks the parts that every request to OpenAI's APIs must contain: a key, a model, and messages. field is the
// name of the JSON field for messages.
func (s *Server) admit(r *http.Request, model, field string, hasMessages bool) error {
	switch {
	case !s.letIn(r):
		return refusal{http.StatusUnauthorized, "invalid_request_error", "Incorrect API key provided."}
	case model == "":
		return bad("Missing required parameter: 'model'.")
	case !hasMessages:
		return bad("Missing required parameter: '%s'.", field)
	}
	return nil
}

// offer records the names of the tools that the CLI offers to the model.
func (c *conversation) offer(tools []offer) error {
	if c.spaces == nil {
		c.spaces = map[string]string{}
	}
	for i, t := range tools {
		switch {
		case t.Type == "":
			return bad("Missing required parameter: 'tools[%d].type'.", i)
		case t.Name == "" && (t.Type == "function" || t.Type == "custom" || t.Type == "namespace"):
			return bad("Missing required parameter: 'tools[%d].name'.", i)
		case t.Type == "namespace":
			if err := c.offer(t.Tools); err != nil {
				return err
			}
			for _, inner := range t.Tools {
				c.spaces[inner.Name] = t.Name
			}
		case t.Name == "":
			c.tools = append(c.tools, t.Type)
		default:
			c.tools = append(c.tools, t.Name)
			if t.Type == "custom" {
				c.free = append(c.free, t.Name)
			}
		}
	}
	return nil
}

// walkInput checks the input of a request and finds the user's prompts. It also counts the results of tools after the
// newest prompt.
func walkInput(raw json.RawMessage, c *conversation) (images []Image, system string, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		c.add(text)
		return nil, "", nil
	}
	var items []inputItem
	if json.Unmarshal(raw, &items) != nil {
		return nil, "", bad("Invalid type for 'input': expected one of an array of objects or a string.")
	}
	c.items = len(items)
	open := map[string]bool{}
	var rules []string
	for i, it := range items {
		switch it.Type {
		case "message", "":
			texts, pictures, err := inputContent(it.Content)
			if err != nil {
				return nil, "", bad("Invalid type for 'input[%d].content': %v", i, err)
			}
			switch it.Role {
			case "user":
				if addTexts(c, texts) {
					images = pictures
				}
			case "developer", "system":
				rules = append(rules, texts...)
			case "assistant":
			default:
				return nil, "", bad("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', "+
					"and 'user'.", it.Role)
			}
		case "additional_tools", "tool_search_output":
			if err := c.offer(it.Tools); err != nil {
				return nil, "", err
			}
		case "tool_search_call":
			c.searched = append(c.searched, string(it.Search))
		case "function_call", "custom_tool_call", "local_shell_call":
			open[it.CallID] = true
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
			if !open[it.CallID] {
				return nil, "", bad("No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
			c.position++
		}
	}
	for id := range open {
		return nil, "", bad("No tool output found for function call %s.", id)
	}
	return images, strings.Join(rules, "\n"), nil
}

// inputContent parses message content that is a string or a list of parts.
func inputContent(raw json.RawMessage) (texts []string, images []Image, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}, nil, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil, nil, errors.New("expected an array of objects or a string")
	}
	for _, p := range parts {
		switch p.Type {
		case "input_text", "output_text", "text":
			texts = append(texts, p.Text)
		case "input_image":
			head, data, _ := strings.Cut(p.ImageURL, ";base64,")
			images = append(images, Image{MIME: strings.TrimPrefix(head, "data:"), Data: data})
		}
	}
	return texts, images, nil
}

// firstError returns the HTTP status of the error with which the server must answer, and false if there is none. The
// server answers with an error after a call of Fail. It also does so if the script begins with APIError steps, until
// each of these errors has occurred APIError.Times times.
func (s *Server) firstError(c conversation) (int, bool) {
	if e := s.failing(); e != nil {
		return e.Status, true
	}
	for i, st := range c.steps() {
		e, ok := st.(script.APIError)
		if !ok {
			return 0, false
		}
		s.mu.Lock()
		used := e.Times > 0 && s.spent[c.key(i)] >= e.Times
		s.mu.Unlock()
		if !used {
			return e.Status, true
		}
	}
	return 0, false
}
