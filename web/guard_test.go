package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Only a request that names this host, comes from no other page and knows the token reaches a page.
func TestOnlyWhoKnowsTheTokenReachesThePage(t *testing.T) {
	const own = "127.0.0.1:4711"
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	h := newGuard("right", 4711).protect(page, page)
	for name, c := range map[string]struct {
		method, host, path string
		headers            map[string]string
		want               int
	}{
		"the cookie":           {"GET", own, "/", map[string]string{"Cookie": "ductor-4711=right"}, 204},
		"the header":           {"POST", own, "/api/send", map[string]string{"Authorization": "Bearer right"}, 204},
		"another name of it":   {"GET", "localhost:4711", "/", map[string]string{"Cookie": "ductor-4711=right"}, 204},
		"no token":             {"GET", own, "/", nil, 401},
		"a wrong cookie":       {"GET", own, "/", map[string]string{"Cookie": "ductor-4711=wrong"}, 401},
		"an empty header":      {"GET", own, "/", map[string]string{"Authorization": "Bearer "}, 401},
		"a wrong address":      {"GET", own, "/?token=wrong", nil, 401},
		"a posted address":     {"POST", own, "/?token=right", nil, 401},
		"a renamed host":       {"GET", "evil.example:4711", "/", map[string]string{"Cookie": "ductor-4711=right"}, 403},
		"another port":         {"GET", "127.0.0.1:80", "/", map[string]string{"Cookie": "ductor-4711=right"}, 403},
		"another page":         {"POST", own, "/api/send", map[string]string{"Cookie": "ductor-4711=right", "Origin": "http://127.0.0.1:80"}, 403},
		"another page, silent": {"GET", own, "/api/stream", map[string]string{"Cookie": "ductor-4711=right", "Sec-Fetch-Site": "same-site"}, 403},
		"a link to the page":   {"GET", own, "/?token=right", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		"a monitor":            {"GET", own, "/healthz", nil, 204},
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
		})
	}
}

// The entrance leads to this server, whatever the path of the address.
func TestTheEntranceLeadsToThisServer(t *testing.T) {
	h := newGuard("right", 4711).protect(http.NotFoundHandler(), nil)
	r := httptest.NewRequest("GET", "http://127.0.0.1:4711//evil.example/?token=right", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if body := w.Body.String(); !strings.Contains(body, `url=/evil.example/"`) {
		t.Errorf("it leads to %q", body)
	}
	cookie := w.Header().Get("Set-Cookie")
	for _, part := range []string{"ductor-4711=right", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q lacks %s", cookie, part)
		}
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
	if err := first.Serve(ctx, http.NotFoundHandler(), nil); err != nil {
		t.Error(err)
	}
}
