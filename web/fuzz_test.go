package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Requests without the token, for other hosts or from other pages never reach the API.
func FuzzGuard(f *testing.F) {
	f.Add("GET", "/api/x", "127.0.0.1:4711", "Bearer right", "http://127.0.0.1:4711", "cors")
	f.Add("POST", "//api/", "localhost:4711", "Bearer wrong", "null", "navigate")
	f.Add("GET", "/", "[::1]:4711", "", "", "")
	f.Fuzz(func(t *testing.T, method, path, host, authorization, origin, mode string) {
		reached := false
		api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })
		files := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		r := httptest.NewRequest(http.MethodGet, "http://"+"127.0.0.1:4711/", nil)
		r.Method, r.URL.Path, r.Host = method, path, host
		r.Header = http.Header{"Authorization": {authorization}, "Origin": {origin}, "Sec-Fetch-Mode": {mode}}
		newGuard("right", 4711).protect(Site{Files: files, API: api}).ServeHTTP(httptest.NewRecorder(), r)
		own := host == "127.0.0.1:4711" || host == "localhost:4711" || host == "[::1]:4711"
		if reached && (authorization != "Bearer right" || !own) {
			t.Fatalf("%s %q of %q with %q reaches the API", method, path, host, authorization)
		}
	})
}
