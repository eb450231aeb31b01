package modelapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"ductor/internal/sim/script"
)

// Options configures a Server.
type Options struct {
	// Key is the only API key that the server accepts. If Key is empty, the server accepts any key, but rejects
	// requests without a key.
	Key string
}

// Server simulates all APIs. It is safe for concurrent use. Create it with New.
type Server struct {
	key  string
	http *http.Server
	url  string
	stop context.CancelFunc // ends responses that hang
	done chan struct{}      // closed when the server has ended

	mu       sync.Mutex
	requests []Request
	arrived  chan struct{}  // closed and replaced when a request arrives
	spent    map[string]int // number of times that a step was performed; the keys come from conversation.key
	outage   *script.APIError
	headers  map[string]string // headers for all responses
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	return &Server{key: o.Key, arrived: make(chan struct{}), spent: map[string]int{}}
}

// Start starts to listen on a free loopback port. The caller must close the server.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for model requests: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan struct{})
	s.url = "http://" + l.Addr().String()
	s.http = &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns an error after Close
	}()
	return nil
}

// Fail makes all requests to models fail with an HTTP status until Recover is called. If message is empty, the error
// has the usual message of the vendor.
func (s *Server) Fail(status int, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = &script.APIError{Status: status, Message: message}
}

// Recover ends the failures that Fail started.
func (s *Server) Recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = nil
}

// failing returns the error that Fail has set, or nil.
func (s *Server) failing() *script.APIError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage
}

// SetHeaders sets headers for all further responses, for example those with the usage limits of an account.
func (s *Server) SetHeaders(headers map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = headers
}

func (s *Server) addHeaders(to http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range s.headers {
		to.Set(name, value)
	}
}

// URL returns the base address without a path, as ANTHROPIC_BASE_URL expects it. For OpenAI's base address, append
// "/v1".
func (s *Server) URL() string { return s.url }

// Close ends all responses. It waits for the server's goroutines until ctx is done.
func (s *Server) Close(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return err
}

// Handler returns the handler for all APIs, for a caller that does not use Start.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("POST /v1/chat/completions", s.chatCompletions)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("GET /v1beta/models", s.geminiModels)
	mux.HandleFunc("/", s.other)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.addHeaders(w.Header())
		mux.ServeHTTP(w, r)
	})
}

// other answers HEAD /, which CLIs use to check the server. It answers all other requests with 404.
func (s *Server) other(w http.ResponseWriter, r *http.Request) {
	s.record(Request{API: Other, Method: r.Method, Path: r.URL.Path})
	if r.Method == http.MethodHead && r.URL.Path == "/" {
		return
	}
	writeJSON(w, http.StatusNotFound, map[string]any{"type": "error",
		"error": map[string]any{"type": "not_found_error", "message": "Not Found"}})
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	s.record(Request{API: Other, Method: r.Method, Path: r.URL.Path})
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "has_more": false, "data": []any{
		map[string]any{"id": "sim-1", "type": "model", "object": "model", "display_name": "Scripted model",
			"owned_by": "sim", "created": 1700000000, "created_at": "2023-11-14T22:13:20Z"},
	}})
}
