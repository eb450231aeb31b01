package modelapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve holds that any request gets an error in JSON or an answer, and at most a broken connection.
func serve(ctx context.Context, t *testing.T, h http.Handler, path string, body []byte) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil && r != http.ErrAbortHandler {
			panic(r)
		}
	}()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("x-api-key", "k")
	req.Header.Set("anthropic-version", "2023-06-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusOK && !json.Valid(w.Body.Bytes()) {
		t.Errorf("%s: status %d without JSON: %q", path, w.Code, w.Body)
	}
}
