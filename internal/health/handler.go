package health

import (
	"encoding/json"
	"net/http"
	"time"
)

type part struct {
	Status Status `json:"status"`
	Last   string `json:"last,omitempty"` // time of the last successful poll, or of the last successful test write
}

// ServeHTTP serves the status of all parts as JSON. The HTTP status is 200 if users get answers, and 503 otherwise.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s := h.State()
	answer := struct {
		Status string          `json:"status"`
		Parts  map[string]part `json:"parts"`
	}{"ok", map[string]part{"polling": {s.Polling, formatTime(s.Answered)}, "store": {s.Store, formatTime(s.Wrote)}}}
	code := http.StatusOK
	if !s.OK() {
		answer.Status, code = "unhealthy", http.StatusServiceUnavailable
	}
	body, _ := json.Marshal(answer) // cannot fail for these types
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
