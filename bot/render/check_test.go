package render

import (
	"strings"
	"testing"
)

func TestCheckRefuses(t *testing.T) {
	e := func(k Kind, offset, length int) Entity { return Entity{Kind: k, Offset: offset, Length: length} }
	for name, c := range map[string]struct {
		text     string
		entities []Entity
		want     string
	}{
		"invalid UTF-8":          {"a\xff", nil, "UTF-8"},
		"a control":              {"a\x00", nil, "changes"},
		"a tab":                  {"a\tb", nil, "changes"},
		"an unknown kind":        {"abc", []Entity{e("url", 0, 1)}, "unknown kind"},
		"no length":              {"abc", []Entity{e(Bold, 1, 0)}, "is empty"},
		"an end outside":         {"abc", []Entity{e(Bold, 1, 3)}, "outside"},
		"a start outside":        {"abc", []Entity{e(Bold, -1, 2)}, "outside"},
		"half a surrogate pair":  {"😀", []Entity{e(Bold, 0, 1)}, "surrogate"},
		"whitespace behind":      {"ab c", []Entity{e(Bold, 0, 3)}, "whitespace"},
		"whitespace before":      {"ab c", []Entity{e(Bold, 2, 2)}, "whitespace"},
		"blank code":             {"a   c", []Entity{e(Code, 1, 2)}, "whitespace"},
		"a link to nowhere":      {"abc", []Entity{{Kind: Link, Offset: 0, Length: 3, URL: "src/main.go"}}, "URL"},
		"a URL on bold":          {"abc", []Entity{{Kind: Bold, Offset: 0, Length: 3, URL: "https://a.example"}}, "URL"},
		"a language on code":     {"abc", []Entity{{Kind: Code, Offset: 0, Length: 3, Language: "go"}}, "language"},
		"a language of two":      {"abc", []Entity{{Kind: Pre, Offset: 0, Length: 3, Language: "go x"}}, "language"},
		"overlap":                {"abc", []Entity{e(Bold, 0, 2), e(Italic, 1, 2)}, "leaves"},
		"overlap of an outer":    {"abcd", []Entity{e(Bold, 0, 3), e(Italic, 0, 2), e(Strikethrough, 1, 3)}, "leaves"},
		"disorder":               {"abc", []Entity{e(Bold, 1, 1), e(Italic, 0, 1)}, "order"},
		"the inner one first":    {"abc", []Entity{e(Bold, 0, 1), e(Italic, 0, 2)}, "order"},
		"bold in code":           {"abc", []Entity{e(Code, 0, 3), e(Bold, 1, 1)}, "may not be in"},
		"code in bold":           {"abc", []Entity{e(Bold, 0, 3), e(Code, 1, 1)}, "may not be in"},
		"bold in bold":           {"abc", []Entity{e(Bold, 0, 3), e(Bold, 1, 1)}, "may not be in"},
		"a quote in a quote":     {"abc", []Entity{e(Blockquote, 0, 3), e(Expandable, 1, 1)}, "may not be in"},
		"code in bold in quotes": {"abc", []Entity{e(Blockquote, 0, 3), e(Bold, 0, 3), e(Code, 1, 1)}, "may not be in"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(Text{Text: c.text, Entities: c.entities})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestCheckTakesWhatTelegramTakes(t *testing.T) {
	text := Text{Text: "  a 😀 d", Entities: []Entity{
		{Kind: Expandable, Offset: 0, Length: 8}, {Kind: Pre, Offset: 0, Length: 3, Language: "c++"},
		{Kind: Link, Offset: 4, Length: 4, URL: "https://a.example/"}, {Kind: Bold, Offset: 4, Length: 2},
	}}
	if err := CheckMessage(text, 8); err != nil {
		t.Error(err)
	}
}

func TestCheckMessageRefuses(t *testing.T) {
	many := Text{Text: strings.Repeat("a ", 101) + "a"}
	for i := range 101 {
		many.Entities = append(many.Entities, Entity{Kind: Bold, Offset: 2 * i, Length: 1})
	}
	for name, c := range map[string]struct {
		text Text
		want string
	}{
		"nothing":             {Text{}, "is empty"},
		"nothing visible":     {Text{Text: " \u200b\u00a0\n"}, "is empty"},
		"too much":            {Plain(strings.Repeat("😀", 200)), "400 units"},
		"too many entities":   {many, "101 entities"},
		"leading whitespace":  {Plain(" a"), "begins"},
		"trailing whitespace": {Plain("a\n"), "ends"},
		"what Check refuses":  {Text{Text: "a\r"}, "changes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckMessage(c.text, 399)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
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
