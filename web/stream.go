package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Stream sends events to a page, in the format for the browser's EventSource. Pages read a stream with fetch, because
// EventSource cannot send the token in a header.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// sendTimeout is the maximum time that a page may take to read an event.
const sendTimeout = 20 * time.Second

// OpenStream starts a response that is a stream of events.
func OpenStream(w http.ResponseWriter) (*Stream, error) {
	s := &Stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return s, s.Flush()
}

// Send puts an event into the buffer. Flush sends the buffer.
func (s *Stream) Send(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return s.SendJSON(name, data)
}

// SendJSON is like Send, for data that is already JSON.
func (s *Stream) SendJSON(name string, data []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("limit the time of an event: %w", err)
	}
	_, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, data)
	return err
}

// Flush sends the events in the buffer to the page.
func (s *Stream) Flush() error { return s.control.Flush() }
