package tgapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestErrorsOfThePlainAPIHoldNoURL(t *testing.T) {
	transport := unreachable(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("no route for %s", r.Host)
	})
	api := NewAPI("http://t", "1:secret-token", transport)
	_, fetchErr := api.Fetch(t.Context(), "photos/../x y")
	bad := NewAPI("http://[broken", "1:secret-token", transport)
	_, badFetch := bad.Fetch(t.Context(), "x")
	for _, err := range []error{api.Call(t.Context(), "getMe", nil, nil), fetchErr, bad.Call(t.Context(), "getMe", nil, nil), badFetch} {
		if err == nil || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("error %v", err)
		}
	}
}

// unreachable is a transport that a test writes.
type unreachable func(*http.Request) (*http.Response, error)

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) { return u(r) }

func FuzzDecodeAnswer(f *testing.F) {
	f.Add(200, []byte(`{"ok":true,"result":[{"update_id":1}]}`))
	f.Add(429, []byte(`{"ok":false,"error_code":429,"parameters":{"retry_after":3}}`))
	f.Add(502, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, data []byte) {
		var raw []json.RawMessage
		err := decodeAnswer("getUpdates", status, data, &raw)
		var no *AnswerError
		if errors.As(err, &no) && no.Code == 0 && status != 0 {
			t.Errorf("an API error without a code: %v", err)
		}
	})
}
