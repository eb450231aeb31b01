package modelapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// GenerateContent is Google's Gemini API.
const GenerateContent API = "generate-content"

// geminiRequest contains the fields of a request to Gemini's API that the server uses.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction"`
	Tools    []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		MIME     string `json:"responseMimeType"`
		Thinking struct {
			Level string `json:"thinkingLevel"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text     *string         `json:"text"`
	Thought  bool            `json:"thought"`
	Data     *geminiData     `json:"inlineData"`
	Call     *geminiFunction `json:"functionCall"`
	Response *geminiFunction `json:"functionResponse"`
	File     json.RawMessage `json:"fileData"`
}

type geminiData struct {
	MIME string `json:"mimeType"`
	Data string `json:"data"`
}

type geminiFunction struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// gemini handles POST /v1beta/models/MODEL:METHOD.
func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch method {
	case "generateContent", "streamGenerateContent":
		s.generate(w, r, model, method == "streamGenerateContent")
	case "countTokens":
		s.record(Request{API: Other, Method: r.Method, Path: r.URL.Path})
		if !s.letGoogleIn(r) {
			writeJSON(w, http.StatusUnauthorized, geminiError(http.StatusUnauthorized, ""))
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": 1200})
	default:
		s.other(w, r)
	}
}

// geminiModels handles GET /v1beta/models.
func (s *Server) geminiModels(w http.ResponseWriter, r *http.Request) {
	s.record(Request{API: Other, Method: r.Method, Path: r.URL.Path})
	writeJSON(w, http.StatusOK, map[string]any{"models": []any{map[string]any{
		"name": "models/gemini-sim", "displayName": "Scripted model", "inputTokenLimit": 1 << 20,
		"outputTokenLimit":           1 << 16,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"}}}})
}

func (s *Server) letGoogleIn(r *http.Request) bool {
	key := r.Header.Get("x-goog-api-key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	return key != "" && (s.key == "" || s.key == key)
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request, model string, stream bool) {
	var in geminiRequest
	rec := Request{API: GenerateContent, Method: r.Method, Path: r.URL.Path, Model: model, Stream: stream,
		Status: http.StatusOK}
	c, err := s.readGemini(r, &in, &rec)
	if err != nil {
		var no refusal
		if !errors.As(err, &no) {
			no = refusal{http.StatusInternalServerError, "", err.Error()}
		}
		rec.Status = no.status
		s.record(rec)
		writeJSON(w, no.status, geminiError(no.status, no.message))
		return
	}
	out := &geminiWire{c: c, w: w, model: model, id: newID(""), counted: defaultUsage()}
	if in.Config.MIME == "application/json" { // a decision for the CLI itself, not an answer to the user
		rec.API = Other
		s.record(rec)
		end(out.decide())
		return
	}
	if st, ok := s.firstError(c); ok {
		rec.Status = st
	}
	s.record(rec)
	end(s.play(r.Context(), c, out))
}

// readGemini reads and checks a request. It records in rec every field that it can read, even if the request is
// invalid.
func (s *Server) readGemini(r *http.Request, in *geminiRequest, rec *Request) (conversation, error) {
	body, err := readBody(r, in)
	rec.Body = body
	if err != nil {
		return conversation{}, err
	}
	switch {
	case !s.letGoogleIn(r):
		return conversation{}, refusal{http.StatusUnauthorized, "", "API key not valid. Please pass a valid API key."}
	case len(in.Contents) == 0:
		return conversation{}, bad("* GenerateContentRequest.contents: contents is not specified")
	case rec.Stream && r.URL.Query().Get("alt") != "sse":
		return conversation{}, bad("streamGenerateContent without alt=sse is not simulated")
	}
	c := conversation{stream: rec.Stream, items: len(in.Contents)}
	for i, t := range in.Tools {
		for j, f := range t.Functions {
			if f.Name == "" {
				return conversation{}, bad("* GenerateContentRequest.tools[%d].function_declarations[%d].name: "+
					"Invalid function name.", i, j)
			}
			c.tools = append(c.tools, f.Name)
		}
	}
	images, err := walkContents(in.Contents, &c)
	if err != nil {
		return conversation{}, err
	}
	rec.Prompt, rec.Position, rec.Tools, rec.Images, rec.Effort = c.prompt, c.position, c.tools, images,
		in.Config.Thinking.Level
	if in.System != nil {
		rec.System = strings.Join(in.System.texts(), "\n")
	}
	return c, nil
}

// walkContents checks the messages of a request and finds the user's prompts. It also counts the results of tools after
// the newest prompt.
func walkContents(contents []geminiContent, c *conversation) (images []Image, err error) {
	calls := 0
	for i, content := range contents {
		if len(content.Parts) == 0 {
			return nil, bad("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		}
		responses, now := 0, 0
		answered := map[string]bool{}
		for j, p := range content.Parts {
			kinds := 0
			for _, is := range []bool{p.Text != nil, p.Data != nil, p.Call != nil, p.Response != nil, len(p.File) > 0} {
				if is {
					kinds++
				}
			}
			if kinds != 1 {
				return nil, bad("* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' "+
					"must have one initialized field", i, j)
			}
			if p.Call != nil {
				now++
			}
			if p.Response != nil && !answered[p.Response.ID] { // a resumed Gemini sends some results of tools twice
				responses++
				answered[p.Response.ID] = p.Response.ID != ""
			}
		}
		switch content.Role {
		case "user", "function", "":
			if responses != calls && (responses > 0 || calls > 0) {
				return nil, bad("Please ensure that the number of function response parts is equal to the number of " +
					"function call parts of the function call turn.")
			}
			c.position += responses
			if responses == 0 && addTexts(c, content.texts()) {
				images = content.images()
			}
			calls = 0
		case "model":
			if calls > 0 {
				return nil, bad("Please ensure that function call turn comes immediately after a user turn or after " +
					"a function response turn.")
			}
			calls = now
		default:
			return nil, bad("Please use a valid role: user, model.")
		}
	}
	return images, nil
}

// texts returns the texts of a message, without the texts that the CLI adds as context.
func (c geminiContent) texts() []string {
	var texts []string
	for _, p := range c.Parts {
		if p.Text != nil && !p.Thought && !strings.HasPrefix(strings.TrimSpace(*p.Text), "<session_context>") {
			texts = append(texts, *p.Text)
		}
	}
	return texts
}

func (c geminiContent) images() []Image {
	var images []Image
	for _, p := range c.Parts {
		if p.Data != nil {
			images = append(images, Image{MIME: p.Data.MIME, Data: p.Data.Data})
		}
	}
	return images
}

func geminiError(status int, message string) map[string]any {
	name := map[int]string{
		http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED",
		http.StatusForbidden: "PERMISSION_DENIED",
		http.StatusNotFound:  "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
		http.StatusServiceUnavailable: "UNAVAILABLE",
	}[status]
	if name == "" {
		name = "INTERNAL"
	}
	if message == "" {
		message = "scripted error"
	}
	return map[string]any{"error": map[string]any{"code": status, "message": message, "status": name}}
}

var _ wire = (*geminiWire)(nil)
