package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// policy allows a page to load only files of this server. Pages contain no inline scripts or styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site is the content of a Server. Parts that the Server does not need are nil.
type Site struct {
	Files http.Handler // files of the page; served without a token, so they must not contain secrets
	API   http.Handler // the page's data and actions; requires the token
	Open  http.Handler // endpoints for monitors; served without a token
}

// guard decides which requests reach a site. A request must name this server as its host and must not come from another
// page. The API also requires the token in a header. The page gets the token in the fragment of its URL, which browsers
// do not send to servers, and keeps it in its session storage. A cookie would not be safe: browsers send it to all
// ports of this host, and so to other users' programs.
type guard struct {
	token string
	port  string
}

func newGuard(token string, port int) *guard { return &guard{token: token, port: strconv.Itoa(port)} }

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
			Fail(w, http.StatusUnauthorized,
				"Open the page by the whole address that ductor printed: the token in it is missing here.")
		}
	})
}

// apiPath is a part of the path of every API request.
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

// isOpen reports whether a request is for an endpoint of monitors.
func isOpen(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/metrics" || r.URL.Path == "/healthz")
}

// isHost rejects other host names that resolve to this address. Otherwise a page that rebinds its own host name to
// 127.0.0.1 would have the same origin as this server.
func (g *guard) isHost(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port != g.port {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isOwnOrigin reports whether a request comes from a page of this server, or from a client that is not a page. Browsers
// send Origin, Sec-Fetch-Site or both.
func (g *guard) isOwnOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// Another page may link to this server, but must not send background requests.
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func (g *guard) knowsToken(r *http.Request) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.matches(bearer)
}

// matches compares tokens in constant time. It compares hashes, because they have equal lengths.
func (g *guard) matches(token string) bool {
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
