package render

import (
	"strings"
	"testing"

	"ductor/bot/render/rendertest"
)

// check returns an error if Telegram would reject or change a text; see rendertest.
func check(t Text) error { return rendertest.Check(t.Text, entitiesOf(t)) }

// checkMessage checks a text for one message.
func checkMessage(t Text, limit int) error {
	return rendertest.CheckMessage(t.Text, entitiesOf(t), limit)
}

func entitiesOf(t Text) (all []rendertest.Entity) {
	for _, e := range t.Entities {
		all = append(all, rendertest.Entity{
			Kind: string(e.Kind), Offset: e.Offset, Length: e.Length, URL: e.URL, Language: e.Language,
		})
	}
	return all
}

func TestLinkable(t *testing.T) {
	for url, want := range map[string]bool{
		"https://a.example": true, "http://a.example:80/x?y#z": true, "HTTPS://A.EXAMPLE": true, "http://1.2.3.4/": true,
		"http://[::1]/": true, "https://пример.рф/": true, "https://a_b.example": true, "tg://resolve?domain=a": true,
		"": false, "a.example": false, "src/main.go": false, "/etc": false, "#top": false, "http://localhost:8080": false,
		"https:///x": false, "https://-a.example": false, "https://a..example": false, "https://u:p@a.example": false,
		"javascript:alert(1)": false, "file:///etc/passwd": false, "mailto:a@b.example": false, "tg:x": false,
		"https://a.example/\x00": false, "https://a.example/a b": false, "https://a.example/%zz": false,
		"https://a.example/" + strings.Repeat("x", longestURL): false,
	} {
		if got := linkable(url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}
