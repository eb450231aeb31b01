package health

import (
	"encoding/json"
	"net/http"
	"time"
)

// part is what a monitor reads of a part.
type part struct {
	Status Status `json:"status"`
	Last   string `json:"last,omitempty"` // when it worked or was tried last
}

// ServeHTTP answers a monitor: 200 where users get answers and 503 where they do not, with the state of the parts.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s := h.State()
	answer := struct {
		Status string          `json:"status"`
		Parts  map[string]part `json:"parts"`
	}{"ok", map[string]part{"polling": {s.Polling, moment(s.Answered)}, "store": {s.Store, moment(s.Wrote)}}}
	code := http.StatusOK
	if !s.OK() {
		answer.Status, code = "unhealthy", http.StatusServiceUnavailable
	}
	body, _ := json.Marshal(answer) // these types can always be encoded
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the monitor may be gone
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
