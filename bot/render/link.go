package render

import (
	"net/netip"
	"net/url"
	"strings"
)

// longestURL is the longest address that is made a link; longer ones are written out, so that a message
// full of links still fits into a request.
const longestURL = 1024

// linkable says that Telegram takes raw as the address of a text link: http and https with a host that has
// a dot in it, or tg. Mail addresses are not among them: Telegram makes web addresses of them in a link, and
// finds them in plain text.
func linkable(raw string) bool {
	if raw == "" || len(raw) > longestURL || !isClean(raw) || strings.ContainsAny(raw, " \n\\<>\"^`{}|") {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return validHost(u.Hostname())
	case "tg":
		return u.Host != "" && validLabel(u.Host)
	}
	return false
}

func validHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == ""
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, l := range labels {
		if !validLabel(l) {
			return false
		}
	}
	return len(labels) > 1 && len(host) <= 253
}

func validLabel(l string) bool {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for _, r := range l {
		if !wordRune(r) && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
