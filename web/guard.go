package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// policy is the Content-Security-Policy. A page may load files only from this server, and must not contain inline
// scripts or styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site contains the handlers of a Server. A nil handler serves nothing.
type Site struct {
	Files http.Handler // files of the page; served without a token, so they must not contain secrets
	API   http.Handler // data and actions of the page; requires the token
	Open  http.Handler // data for monitoring; served without a token
}

// guard checks requests before they reach a Site. The Host header of a request must name this server, and the request
// must not come from a page of another server. A request to the API must also contain the token in a header.
//
// The page gets the token in the fragment of its URL, which browsers do not send to servers. It stores the token in its
// session storage. A cookie would not be safe, because browsers send cookies to all ports of this host, and so to
// programs of other users.
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

// apiPath is the prefix of the paths of the API.
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

// isOpen reports whether a request is for monitoring. Such a request needs no token.
func isOpen(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/metrics" || r.URL.Path == "/healthz")
}

// isHost reports whether a Host header names this server. Any other name is rejected, even if it resolves to this
// server's address. Otherwise an attacker could make the name of a web site resolve to 127.0.0.1 (DNS rebinding). Pages
// of this web site would then have the same origin as this server.
func (g *guard) isHost(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port != g.port {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isOwnOrigin reports whether a request comes from a page of this server, or from a program that is not a browser. A
// request without the headers Origin and Sec-Fetch-Site cannot come from a browser.
func (g *guard) isOwnOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	// A page of another server may link to this server, but its scripts must not send requests.
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func (g *guard) knowsToken(r *http.Request) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.matches(bearer)
}

// matches reports whether a token is correct. It compares hashes in constant time, so that the duration reveals nothing
// about the correct token.
func (g *guard) matches(token string) bool {
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
