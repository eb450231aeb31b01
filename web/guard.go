package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const tokenParameter = "token"

// policy lets a page load only what this server serves. Pages hold no script or style of their own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard decides which requests reach a page: those that name this server as their host, do not come from the page of
// another, and know the token. The token comes in the address once; after that it is a cookie.
type guard struct {
	token  string
	port   string
	cookie string // its name: cookies of all ports of a host are shared
}

func newGuard(token string, port int) *guard {
	number := strconv.Itoa(port)
	return &guard{token: token, port: number, cookie: "ductor-" + number}
}

// protect puts the guard before the pages. What open answers needs no token.
func (g *guard) protect(pages, open http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		switch {
		case !g.isHost(r.Host) || !g.isOwnOrigin(r):
			http.Error(w, "This address is not one of ductor's page.", http.StatusForbidden)
		case open != nil && isOpen(r):
			open.ServeHTTP(w, r)
		case r.URL.Query().Has(tokenParameter):
			g.enter(w, r)
		case !g.knowsToken(r):
			http.Error(w, "Open the page by the whole address that ductor printed: the token in it is missing here.", http.StatusUnauthorized)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

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

// enter turns the token of the address into a cookie, and takes it out of the address.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodGet || !g.matches(query.Get(tokenParameter)) {
		http.Error(w, "The token in this address is wrong; ductor printed another one.", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Set-Cookie", g.cookie+"="+url.QueryEscape(g.token)+"; Path=/; HttpOnly; SameSite=Strict")
	query.Del(tokenParameter)
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: query.Encode()} // two slashes would name another host
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, entrance, html.EscapeString(to.String()))
}

// entrance leads on to the page. A redirect would not do: browsers send strict cookies only where a page of this server
// leads, and the address with the token may have been opened from anywhere.
const entrance = `<!doctype html><html lang="en"><head><title>ductor</title><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=%[1]s"></head>` +
	`<body><a href="%[1]s">Go to the page</a></body></html>`

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
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.matches(bearer)
	}
	c, err := r.Cookie(g.cookie)
	return err == nil && g.matches(c.Value)
}

// matches compares without telling by its time how much is right; sums have one length.
func (g *guard) matches(token string) bool {
	want, got := sha256.Sum256([]byte(g.token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
