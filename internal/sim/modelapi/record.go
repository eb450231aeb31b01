package modelapi

import (
	"context"
	"slices"
	"strings"
)

// API is the vendor's API of a request.
type API string

// Known APIs. Other stands for probes and unknown requests.
const (
	Messages  API = "messages"  // Anthropic
	Responses API = "responses" // OpenAI
	Chat      API = "chat"      // OpenAI's older API, which many other servers support
	Other     API = "other"
)

// Request is one request as it reached the model.
type Request struct {
	API          API
	Method, Path string
	Model        string
	Session      string   // the CLI's own session, if it sends one
	Prompt       string   // the newest text of the user, without the CLI's additions
	Position     int      // tool results since that text
	System       string   // system prompt or instructions
	Effort       string   // reasoning effort, if the request sets it
	Tools        []string // names of the tools on offer
	Images       []Image  // of the newest message of the user
	Stream       bool
	Status       int    // status of the response
	Body         []byte // unchanged
}

// Image is a picture in a request. Data is the unchanged base64 text.
type Image struct{ MIME, Data string }

// Requests returns all requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Prompts returns all requests to a model, without probes.
func (s *Server) Prompts() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.API == Other })
}

// Asked returns the joined bodies of Prompts.
func (s *Server) Asked() string {
	var b strings.Builder
	for _, r := range s.Prompts() {
		b.Write(r.Body)
	}
	return b.String()
}

// Await waits until enough accepts the requests so far, or ctx ends.
func (s *Server) Await(ctx context.Context, enough func([]Request) bool) error {
	for {
		s.mu.Lock()
		arrived := s.arrived
		s.mu.Unlock()
		if enough(s.Requests()) {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// wearsOff counts a use of a step, and reports whether the step was used up before. If times is 0, the step is never
// used up.
func (s *Server) wearsOff(key string, times int) bool {
	if times == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent[key] >= times {
		return true
	}
	s.spent[key]++
	return false
}
