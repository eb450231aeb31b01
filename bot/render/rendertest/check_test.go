package rendertest

import (
	"strings"
	"testing"
)

func TestCheckRefuses(t *testing.T) {
	const expandable, quote, strike = "expandable_blockquote", "blockquote", "strikethrough"
	e := func(k string, offset, length int) Entity { return Entity{Kind: k, Offset: offset, Length: length} }
	for name, c := range map[string]struct {
		text     string
		entities []Entity
		want     string
	}{
		"invalid UTF-8":          {"a\xff", nil, "UTF-8"},
		"a control":              {"a\x00", nil, "changes"},
		"a tab":                  {"a\tb", nil, "changes"},
		"an unknown kind":        {"abc", []Entity{e("url", 0, 1)}, "unknown kind"},
		"no length":              {"abc", []Entity{e("bold", 1, 0)}, "is empty"},
		"an end outside":         {"abc", []Entity{e("bold", 1, 3)}, "outside"},
		"a start outside":        {"abc", []Entity{e("bold", -1, 2)}, "outside"},
		"half a surrogate pair":  {"😀", []Entity{e("bold", 0, 1)}, "surrogate"},
		"whitespace behind":      {"ab c", []Entity{e("bold", 0, 3)}, "whitespace"},
		"whitespace before":      {"ab c", []Entity{e("bold", 2, 2)}, "whitespace"},
		"blank code":             {"a   c", []Entity{e("code", 1, 2)}, "whitespace"},
		"a link to nowhere":      {"abc", []Entity{{Kind: link, Offset: 0, Length: 3, URL: "src/main.go"}}, "URL"},
		"a URL on bold":          {"abc", []Entity{{Kind: "bold", Length: 3, URL: "https://a.example"}}, "URL"},
		"a language on code":     {"abc", []Entity{{Kind: "code", Offset: 0, Length: 3, Language: "go"}}, "language"},
		"a language of two":      {"abc", []Entity{{Kind: pre, Offset: 0, Length: 3, Language: "go x"}}, "language"},
		"overlap":                {"abc", []Entity{e("bold", 0, 2), e("italic", 1, 2)}, "leaves"},
		"overlap of an outer":    {"abcd", []Entity{e("bold", 0, 3), e("italic", 0, 2), e(strike, 1, 3)}, "leaves"},
		"disorder":               {"abc", []Entity{e("bold", 1, 1), e("italic", 0, 1)}, "order"},
		"the inner one first":    {"abc", []Entity{e("bold", 0, 1), e("italic", 0, 2)}, "order"},
		"bold in code":           {"abc", []Entity{e("code", 0, 3), e("bold", 1, 1)}, "may not be in"},
		"code in bold":           {"abc", []Entity{e("bold", 0, 3), e("code", 1, 1)}, "may not be in"},
		"bold in bold":           {"abc", []Entity{e("bold", 0, 3), e("bold", 1, 1)}, "may not be in"},
		"a quote in a quote":     {"abc", []Entity{e(quote, 0, 3), e(expandable, 1, 1)}, "may not be in"},
		"code in bold in quotes": {"abc", []Entity{e(quote, 0, 3), e("bold", 0, 3), e("code", 1, 1)}, "may not be in"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.text, c.entities)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestCheckTakesWhatTelegramTakes(t *testing.T) {
	entities := []Entity{
		{Kind: "expandable_blockquote", Offset: 0, Length: 8}, {Kind: pre, Offset: 0, Length: 3, Language: "c++"},
		{Kind: link, Offset: 4, Length: 4, URL: "https://a.example/"}, {Kind: "bold", Offset: 4, Length: 2},
	}
	if err := CheckMessage("  a 😀 d", entities, 8); err != nil {
		t.Error(err)
	}
}

func TestCheckMessageRefuses(t *testing.T) {
	var many []Entity
	for i := range 101 {
		many = append(many, Entity{Kind: "bold", Offset: 2 * i, Length: 1})
	}
	for name, c := range map[string]struct {
		text     string
		entities []Entity
		want     string
	}{
		"nothing":             {"", nil, "is empty"},
		"nothing visible":     {" \u200b\u00a0\n", nil, "is empty"},
		"too much":            {strings.Repeat("😀", 200), nil, "400 units"},
		"too many entities":   {strings.Repeat("a ", 101) + "a", many, "101 entities"},
		"leading whitespace":  {" a", nil, "begins"},
		"trailing whitespace": {"a\n", nil, "ends"},
		"what Check refuses":  {"a\r", nil, "changes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckMessage(c.text, c.entities, 399)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestLinkable(t *testing.T) {
	for _, address := range []string{
		"https://a.example", "http://a.example:80/x?y#z", "HTTPS://A.EXAMPLE", "http://1.2.3.4/",
		"http://[::1]/", "https://пример.рф/", "https://a_b.example", "tg://resolve?domain=a",
	} {
		if !linkable(address) {
			t.Errorf("%q is not linkable", address)
		}
	}
	for _, address := range []string{
		"", "a.example", "src/main.go", "/etc", "#top", "http://localhost:8080", "https:///x",
		"https://-a.example", "https://a..example", "https://u:p@a.example", "javascript:alert(1)",
		"file:///etc/passwd", "mailto:a@b.example", "tg:x", "https://a.example/\x00", "https://a.example/a b",
		"https://a.example/%zz", "https://a.example/" + strings.Repeat("x", longestURL),
	} {
		if linkable(address) {
			t.Errorf("%q is linkable", address)
		}
	}
}
