package modelapi

import (
	"context"
	"slices"
	"strings"
)

// API names the API that a request uses.
type API string

// API values. Other is used for requests that are not sent to a model.
const (
	Messages  API = "messages"  // Anthropic
	Responses API = "responses" // OpenAI
	Chat      API = "chat"      // OpenAI's older API, which many other servers also offer
	Other     API = "other"
)

// Request is a request of a CLI, as the server got it.
type Request struct {
	API          API
	Method, Path string
	Model        string
	Session      string   // the CLI's ID for its session, if the request contains it
	Prompt       string   // the user's newest prompt, without additions of the CLI
	Position     int      // number of tool results that follow the newest prompt
	System       string   // system prompt or instructions
	Effort       string   // reasoning effort, if the request sets it
	Tools        []string // names of the tools that the CLI offers to the model
	Images       []Image  // images in the user's newest message
	Stream       bool
	Status       int    // HTTP status of the response
	Body         []byte // unchanged body of the request
}

// Image is a picture in a request. Data is base64.
type Image struct{ MIME, Data string }

// Requests returns all requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Prompts returns all requests that were sent to a model.
func (s *Server) Prompts() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.API == Other })
}

// Asked returns the bodies of all requests to models as one text.
func (s *Server) Asked() string {
	var b strings.Builder
	for _, r := range s.Prompts() {
		b.Write(r.Body)
	}
	return b.String()
}

// Await waits until enough returns true for the requests received so far, or until ctx is done.
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

// reachedLimit reports whether the server has already performed a step as often as the limit allows. If not,
// reachedLimit counts one more time. A limit of 0 means no limit.
func (s *Server) reachedLimit(key string, limit int) bool {
	if limit == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent[key] >= limit {
		return true
	}
	s.spent[key]++
	return false
}
