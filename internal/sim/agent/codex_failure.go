package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ductor/internal/sim/script"
)

// codexFailure is the error that ends a turn because the model's API failed.
type codexFailure struct {
	message string
	status  int
}

func (f codexFailure) Error() string { return f.message }

// apiError simulates a failure of the model's API. If a retry could help, Codex tries five times.
func (t *codexTurn) apiError(st script.APIError) error {
	const most = 5
	f := codexFailureOf(st)
	switch st.Status {
	case 400, 429:
		t.sink.apiError(f.message, f.status, false)
		return f
	}
	delay := 200 * time.Millisecond
	for attempt := 1; st.Times == 0 || attempt <= st.Times; attempt++ {
		if attempt > most {
			t.sink.apiError(f.message, f.status, false)
			return f
		}
		t.sink.apiError(fmt.Sprintf("Reconnecting... %d/%d (%s)", attempt, most, f.message), f.status, true)
		wait := delay
		if st.Delay > 0 {
			wait = st.Delay
		}
		if err := sleep(t.ctx, wait); err != nil {
			return err
		}
		delay *= 2
	}
	return nil
}

func codexFailureOf(st script.APIError) codexFailure {
	said := or(st.Message, "scripted error "+fmt.Sprint(st.Status))
	f := codexFailure{status: st.Status}
	switch st.Status {
	case 400:
		b, err := json.Marshal(map[string]any{"error": map[string]any{
			"message": said, "type": "invalid_request_error", "code": nil, "param": nil}})
		if err != nil {
			b = []byte(said)
		}
		f.message = string(b)
	case 429:
		f.message = "exceeded retry limit, last status: 429 Too Many Requests"
	case 500:
		f.message = "We’re currently experiencing high demand, which may cause temporary errors."
	default:
		f.message = fmt.Sprintf("unexpected status %d %s: %s, url: http://127.0.0.1:0/v1/responses",
			st.Status, or(http.StatusText(st.Status), "<unknown status code>"), said)
	}
	return f
}
