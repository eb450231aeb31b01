package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// policy lets a page load only what this server serves. Pages hold no script or style of their own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site is what a Server serves. A part that is nil answers nothing.
type Site struct {
	Files http.Handler // the page itself, for everyone on this machine: it must hold nothing secret
	API   http.Handler // what the page shows and does, for requests with the token
	Open  http.Handler // what monitors read, without a token
}

// guard decides which requests reach a site: those that name this server as their host and do not come from another page.
// The API also wants the token in a header. The token stands in the fragment of the page's address, which no browser sends,
// and the page keeps it in its own storage. A cookie would go to every port of this host, and so to other users' programs.
type guard struct {
	token string
	port  string
}

func newGuard(token string, port int) *guard { return &guard{token: token, port: strconv.Itoa(port)} }

// protect puts the guard before a site.
func (g *guard) protect(site Site) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		switch {
		case !g.isHost(r.Host) || !g.isOwnOrigin(r):
			http.Error(w, "This address is not one of ductor's page.", http.StatusForbidden)
		case site.Open != nil && isOpen(r):
			site.Open.ServeHTTP(w, r)
		case site.API != nil && g.knowsToken(r):
			site.API.ServeHTTP(w, r)
		case site.Files != nil && r.Method == http.MethodGet && !strings.Contains(r.URL.Path, apiPath):
			site.Files.ServeHTTP(w, r)
		default:
			Fail(w, http.StatusUnauthorized, "Open the page by the whole address that ductor printed: the token in it is missing here.")
		}
	})
}

// apiPath is in the address of each request to an API.
const apiPath = "/api/"

func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "microphone=(self), camera=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
}

// isOpen says whether a request is for what monitors read.
func isOpen(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/metrics" || r.URL.Path == "/healthz")
}

// isHost refuses the names of other hosts that lead to this address: without it, a page that renames its own host to
// 127.0.0.1 would be of the same origin as this one.
func (g *guard) isHost(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port != g.port {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isOwnOrigin says whether a request comes from this page, or from no page. Browsers say so in one or both headers.
func (g *guard) isOwnOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// Another page may lead here, but not ask for anything in the background.
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func (g *guard) knowsToken(r *http.Request) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.matches(bearer)
}

// matches compares without telling by its time how much is right; sums have one length.
func (g *guard) matches(token string) bool {
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
