package modelapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// messagesRequest contains the fields of a request to POST /v1/messages that the server uses.
type messagesRequest struct {
	Model     string          `json:"model"`
	MaxTokens *int            `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string          `json:"name"`
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	Output struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
}

type block struct {
	Type      string  `json:"type"`
	Text      *string `json:"text"`
	ID        string  `json:"id"`
	ToolUseID string  `json:"tool_use_id"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// messages handles POST /v1/messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("request-id", newID("req_"))
	var in messagesRequest
	rec := Request{API: Messages, Method: r.Method, Path: r.URL.Path, Status: http.StatusOK}
	c, err := s.readMessages(r, &in, &rec)
	if err != nil {
		s.refuseMessages(w, rec, err)
		return
	}
	out := &messageWire{c: c, model: in.Model, id: newID("msg_"), events: events{w: w}, counted: defaultUsage()}
	if st, ok := s.firstError(c); ok {
		rec.Status = st
	}
	s.record(rec)
	end(s.play(r.Context(), c, out))
}

func (s *Server) refuseMessages(w http.ResponseWriter, rec Request, err error) {
	var no refusal
	if !errors.As(err, &no) {
		no = refusal{http.StatusInternalServerError, "api_error", err.Error()}
	}
	rec.Status = no.status
	s.record(rec)
	writeJSON(w, no.status, anthropicError(no.kind, no.message))
}

func anthropicError(kind, message string) map[string]any {
	return map[string]any{"type": "error", "request_id": newID("req_"),
		"error": map[string]any{"type": kind, "message": message}}
}

// readMessages reads and checks a request. It records in rec every field that it can read, even if the request is
// invalid.
func (s *Server) readMessages(r *http.Request, in *messagesRequest, rec *Request) (conversation, error) {
	body, err := readBody(r, in)
	rec.Body = body
	if err != nil {
		return conversation{}, err
	}
	if !s.letIn(r) {
		return conversation{}, refusal{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	}
	if r.Header.Get("anthropic-version") == "" {
		return conversation{}, bad("anthropic-version: header is required")
	}
	if err := in.check(); err != nil {
		return conversation{}, err
	}
	c := conversation{session: r.Header.Get("X-Claude-Code-Session-Id"), stream: in.Stream, items: len(in.Messages)}
	for _, t := range in.Tools {
		c.tools = append(c.tools, t.Name)
	}
	images, err := in.walk(&c)
	if err != nil {
		return conversation{}, err
	}
	rec.Model, rec.Session, rec.Prompt, rec.Position = in.Model, c.session, c.prompt, c.position
	rec.System, rec.Effort, rec.Tools, rec.Images, rec.Stream = plainText(in.System), in.Output.Effort, c.tools, images,
		in.Stream
	return c, nil
}

// check returns an error if the API would reject the request.
func (in *messagesRequest) check() error {
	switch {
	case in.Model == "":
		return bad("model: Field required")
	case in.MaxTokens == nil:
		return bad("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return bad("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0:
		return bad("messages: at least one message is required")
	case in.Messages[0].Role != "user":
		return bad("messages: first message must use the \"user\" role")
	}
	for i, t := range in.Tools {
		if t.Name == "" {
			return bad("tools.%d.name: Field required", i)
		}
		if t.Type == "" && len(t.Schema) == 0 {
			return bad("tools.%d.input_schema: Field required", i)
		}
	}
	return nil
}

// walk checks the messages of a request and finds the user's prompts. It also counts the results of tools after the
// newest prompt.
func (in *messagesRequest) walk(c *conversation) ([]Image, error) {
	var (
		images []Image
		open   = map[string]bool{} // tool calls that have no result yet
	)
	for i, m := range in.Messages {
		blocks, err := contentBlocks(m.Content)
		if err != nil {
			return nil, bad("messages.%d.content: %v", i, err)
		}
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return nil, bad("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		results := 0
		var texts []string
		for j, b := range blocks {
			switch b.Type {
			case "text":
				if b.Text == nil || strings.TrimSpace(*b.Text) == "" {
					return nil, bad("messages.%d.content.%d.text: text content blocks must contain non-whitespace text",
						i, j)
				}
				texts = append(texts, *b.Text)
			case "tool_use":
				open[b.ID] = true
			case "tool_result":
				if !open[b.ToolUseID] {
					return nil,
						bad("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, j,
							b.ToolUseID)
				}
				delete(open, b.ToolUseID)
				results++
			case "image":
				if b.Source.Type == "base64" && (b.Source.MediaType == "" || b.Source.Data == "") {
					return nil, bad("messages.%d.content.%d.image.source: Field required", i, j)
				}
			}
		}
		if m.Role == "user" && results == 0 && len(open) > 0 {
			return nil, bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after",
				i-1)
		}
		if m.Role != "user" {
			continue
		}
		if results > 0 {
			c.position++
			texts = afterInterrupt(texts)
		}
		if added := addTexts(c, texts); added {
			images = blockImages(blocks)
		}
	}
	return images, nil
}

// afterInterrupt returns the texts that the user wrote after interrupting a tool call. Claude sends these texts in one
// message with the result of the tool. Without an interrupt, such a message contains no text of the user.
func afterInterrupt(texts []string) []string {
	for i, t := range texts {
		if strings.HasPrefix(t, "[Request interrupted by user") {
			return texts[i+1:]
		}
	}
	return nil
}

// addTexts joins the user's texts in a message, and adds them as one prompt. It returns false if the message contains
// no text of the user.
func addTexts(c *conversation, texts []string) bool {
	var own []string
	for _, t := range texts {
		if !wrapped(t) {
			own = append(own, t)
		}
	}
	if len(own) == 0 {
		return false
	}
	c.add(strings.Join(own, "\n"))
	return true
}

func blockImages(blocks []block) []Image {
	var images []Image
	for _, b := range blocks {
		if b.Type == "image" {
			images = append(images, Image{MIME: b.Source.MediaType, Data: b.Source.Data})
		}
	}
	return images
}

// contentBlocks parses message content that is a string or a list of blocks.
func contentBlocks(raw json.RawMessage) ([]block, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: &text}}, nil
	}
	var blocks []block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, errors.New("Input should be a valid string or list")
	}
	return blocks, nil
}

// plainText returns the text of message content that is a string or a list of blocks.
func plainText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	blocks, err := contentBlocks(raw)
	if err != nil {
		return ""
	}
	var parts []string
	for _, b := range blocks {
		if b.Text != nil {
			parts = append(parts, *b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// countTokens handles POST /v1/messages/count_tokens. It counts four bytes as a token.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	var in json.RawMessage
	body, err := readBody(r, &in)
	rec := Request{API: Other, Method: r.Method, Path: r.URL.Path, Body: body, Status: http.StatusOK}
	switch {
	case err != nil:
		s.refuseMessages(w, rec, err)
	case !s.letIn(r):
		s.refuseMessages(w, rec, refusal{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"})
	default:
		s.record(rec)
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(body)/4 + 1})
	}
}
