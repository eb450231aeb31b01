package modelapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ductor/internal/sim/script"
)

const maxBody = 64 << 20

// refusal is the error response to an invalid request.
type refusal struct {
	status  int
	kind    string // the vendor's name for the kind of error
	message string
}

func (r refusal) Error() string { return r.message }

func bad(format string, args ...any) error {
	return refusal{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...)}
}

func readBody(r *http.Request, v any) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, bad("read the request body: %v", err)
	case len(b) > maxBody:
		return nil, refusal{http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size"}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return b, bad("The request body is not valid JSON: %v", err)
	}
	return b, nil
}

// credential returns the API key of a request. Each vendor uses a different header or parameter for the key.
func credential(r *http.Request) string {
	if k := r.Header.Get("x-api-key"); k != "" {
		return k
	}
	k, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return k
}

func (s *Server) letIn(r *http.Request) bool {
	k := credential(r)
	return k != "" && (s.key == "" || s.key == k)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}

// setErrorHeaders sets the HTTP headers that belong to an error in a script.
func setErrorHeaders(w http.ResponseWriter, e script.APIError) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

// cutLinger is a pause before the server breaks the connection. During this pause the client can read the response.
// Without the pause, the reset of the connection would discard unread data.
const cutLinger = 20 * time.Millisecond

// end ends a request. If err is not nil, it breaks the connection, so that the client notices that the response is
// incomplete.
func end(err error) {
	if errors.Is(err, errCut) {
		time.Sleep(cutLinger)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // makes net/http break the connection without logging anything
	}
}

type events struct {
	w     http.ResponseWriter
	began bool
}

// send writes an event and flushes it immediately.
func (e *events) send(name string, v any) error {
	if !e.began {
		e.began = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, b); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return http.NewResponseController(e.w).Flush()
}

// newID returns an ID with a prefix, in the form that vendors use.
func newID(prefix string) string {
	return prefix + strings.ReplaceAll(uuid.NewString(), "-", "")[:24]
}

func unixNow() int64 { return time.Now().Unix() }

// defaultUsage returns the usage of a response if its script sets none.
func defaultUsage() script.Usage { return script.Usage{Input: 1200, Output: 42} }
