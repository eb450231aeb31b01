package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page itself is open to everyone on this machine. The API requires the right host, no other page as origin, and
// the token in the header. A cookie is neither accepted nor set.
func TestOnlyWhoKnowsTheTokenReachesTheAPI(t *testing.T) {
	const own = "127.0.0.1:4711"
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	const api, files, open = 201, 202, 203
	h := newGuard("right", 4711).protect(Site{Files: answer(files), API: answer(api), Open: answer(open)})
	right := func(more ...string) map[string]string {
		headers := map[string]string{"Authorization": "Bearer right"}
		for i := 0; i < len(more); i += 2 {
			headers[more[i]] = more[i+1]
		}
		return headers
	}
	for name, c := range map[string]struct {
		method, host, path string
		headers            map[string]string
		want               int
	}{
		"the header":           {"POST", own, "/api/send", right(), api},
		"another name of it":   {"GET", "localhost:4711", "/api/stream", right(), api},
		"the page":             {"GET", own, "/", nil, files},
		"a page below":         {"GET", own, "/tour/", nil, files},
		"no token":             {"GET", own, "/api/stream", nil, 401},
		"below, no token":      {"GET", own, "/tour/api/stream", nil, 401},
		"a posted page":        {"POST", own, "/", nil, 401},
		"a cookie":             {"GET", own, "/api/stream", map[string]string{"Cookie": "ductor-4711=right; token=right"}, 401},
		"an address":           {"GET", own, "/api/stream?token=right", nil, 401},
		"a wrong header":       {"GET", own, "/api/stream", map[string]string{"Authorization": "Bearer wrong"}, 401},
		"an empty header":      {"GET", own, "/api/stream", map[string]string{"Authorization": "Bearer "}, 401},
		"a renamed host":       {"GET", "evil.example:4711", "/api/stream", right(), 403},
		"another port":         {"GET", "127.0.0.1:80", "/api/stream", right(), 403},
		"another page":         {"POST", own, "/api/send", right("Origin", "http://127.0.0.1:80"), 403},
		"another page, silent": {"GET", own, "/api/stream", right("Sec-Fetch-Site", "same-site"), 403},
		"a link to the page":   {"GET", own, "/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, files},
		"a monitor":            {"GET", own, "/healthz", nil, open},
		"a monitor's post":     {"POST", own, "/healthz", nil, 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Host = c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("it answers %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
				t.Errorf("its policy is %q", csp)
			}
			if cookie := w.Header().Get("Set-Cookie"); cookie != "" {
				t.Errorf("it sets the cookie %q", cookie)
			}
		})
	}
}

func TestAddressesThatOtherMachinesReachAreRefused(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0": "can be reached from other machines", ":0": "can be reached from other machines", "8080": "is no address",
		"example.com:0": "can be reached from other machines",
	} {
		if s, err := Listen(addr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", addr, s, err)
		}
	}
	first, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(strings.TrimPrefix(first.Origin(), "http://")); err == nil || !strings.Contains(err.Error(), "another program listens") {
		t.Errorf("a busy port gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Serve(ctx, Site{}); err != nil {
		t.Error(err)
	}
}
