package telegram

import (
	"net/url"
	"strings"
)

// checkLink returns the address of a link or button as Telegram stores it: with the scheme http if the address has no
// scheme, and with a slash after a bare host. It returns false for an address that Telegram rejects: another scheme, a
// relative path, or a host without a dot.
func checkLink(raw string) (string, bool) {
	raw = strings.TrimSpace(raw)
	if raw == "" || strings.ContainsAny(raw, " \n\t") {
		return "", false
	}
	scheme, _, found := strings.Cut(raw, "://")
	switch lower := strings.ToLower(scheme); {
	case !found:
		raw = "http://" + raw
	case lower == "tg" || lower == "ton" || lower == "tonsite":
		return raw, true
	case lower != "http" && lower != "https" && lower != "ftp":
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || !validHost(u.Hostname(), found) {
		return "", false
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), true
}

// validHost reports whether a link may contain a host. If spelledOut is false, the link has no scheme, and the host
// must contain a dot.
func validHost(host string, spelledOut bool) bool {
	if strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") || strings.Contains(host, "..") {
		return false
	}
	return spelledOut || strings.Contains(host, ".")
}
