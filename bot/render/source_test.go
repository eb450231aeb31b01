package render

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestSourceSaysWhatATextShows(t *testing.T) {
	for _, tt := range []struct {
		name string
		text Text
		want string
	}{
		{"nothing", Text{Text: "2*3 [a](b) `c`"}, "2*3 [a](b) `c`"},
		{"a link behind an emoji", Text{"🎉 Read the article now", []Entity{{Kind: Link, Offset: 8, Length: 11, URL: "https://e.org/?a=1"}}}, "🎉 Read [the article](https://e.org/?a=1) now"},
		{"an address with brackets", Text{"see [1]", []Entity{{Kind: Link, Offset: 4, Length: 3, URL: "https://e.org/a_(b) c"}}}, `see [\[1\]](<https://e.org/a_(b)%20c>)`},
		{"a link that shows its address", Text{"https://e.org", []Entity{{Kind: Link, Length: 13, URL: "https://e.org"}}}, "https://e.org"},
		{"code", Text{"run a`b now", []Entity{{Kind: Code, Offset: 4, Length: 3}}}, "run ``a`b`` now"},
		{"a block of code", Text{"look:\nif x {\n\t```\n}\nwhy", []Entity{{Kind: Pre, Offset: 6, Length: 14, Language: "go"}}}, "look:\n````go\nif x {\n\t```\n}\n````\nwhy"},
		{"a block of code in a line", Text{"so: x=1 ok", []Entity{{Kind: Pre, Offset: 4, Length: 3}}}, "so: \n```\nx=1\n```\n ok"},
		{"a style over a link", Text{"ab cd", []Entity{{Kind: Bold, Length: 5}, {Kind: Link, Offset: 3, Length: 2, URL: "x:y"}}}, "**ab [cd](x:y)**"},
		{"styles that overlap", Text{"abcdef", []Entity{{Kind: Bold, Length: 4}, {Kind: Italic, Offset: 2, Length: 4}}}, "**ab*cd****ef*"},
		{"a style around code", Text{"ab cd", []Entity{{Kind: Bold, Length: 5}, {Kind: Code, Offset: 3, Length: 2}}}, "**ab **`cd`"},
		{"a style with a space at its end", Text{"ab cd", []Entity{{Kind: Bold, Length: 3}}}, "**ab** cd"},
		{"a quote", Text{"one\ntwo\nmine", []Entity{{Kind: Blockquote, Length: 7}, {Kind: Bold, Offset: 4, Length: 3}}}, "> one\n> **two**\n\nmine"},
		{"a quote that opens", Text{"hi\none\n\nmine", []Entity{{Kind: Expandable, Offset: 3, Length: 3}}}, "hi\n> one\n\nmine"},
		{"what Markdown cannot say", Text{"a 😀 b c", []Entity{{Kind: "underline", Length: 1}, {Kind: "custom_emoji", Offset: 2, Length: 2}, {Kind: "mention", Offset: 5, Length: 1}}}, "a 😀 b c"},
		{"out of the text", Text{"ab", []Entity{{Kind: Bold, Offset: 1, Length: 99}, {Kind: Code, Offset: -3, Length: 2}, {Kind: Link, Offset: 7, Length: 1}}}, "a**b**"},
	} {
		if got := Source(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The kinds are those that a user can format a text with, and one that Markdown does not have.
func drawEntity(t *rapid.T, units int) Entity {
	kinds := []Kind{Bold, Italic, Strikethrough, Code, Pre, Link, Blockquote, Expandable, "spoiler"}
	e := Entity{
		Kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
		Offset: rapid.IntRange(-2, units+2).Draw(t, "offset"), Length: rapid.IntRange(-1, units+2).Draw(t, "length"),
	}
	if e.Kind == Link {
		e.URL = rapid.SampledFrom([]string{"https://e.org", "tg://user?id=1", "https://e.org/(x) <y>\n"}).Draw(t, "url")
	}
	return e
}

// However entities lie over a text, none of its words is lost, doubled or moved.
func TestSourceLosesNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "🎉", " ", "\n", "e\u0301", "word", "`", "]"}), 0, 20).Draw(t, "text"), "")
		entities := make([]Entity, rapid.IntRange(0, 6).Draw(t, "entities"))
		for i := range entities {
			entities[i] = drawEntity(t, Len(text))
			if entities[i].Kind == Link && strings.ContainsAny(entities[i].URL, "ae") {
				entities[i].URL = strings.ToUpper(entities[i].URL) // distinguishable from the text
			}
		}
		// The marks are distinguishable from the text: they are not letters and not counted.
		kept := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) || strings.ContainsRune("`]\\[*~<>()", r) || unicode.IsUpper(r) || strings.ContainsRune(":/.?=&%1234567890", r) {
					return -1
				}
				return r
			}, s)
		}
		if got := Source(Text{text, entities}); kept(got) != kept(text) {
			t.Fatalf("%q with %+v became %q", text, entities, got)
		}
	})
}

// If styles cover whole words, the Markdown of Source renders to the text as it was sent.
func TestMarkdownOfASourceShowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"alpha", "beta", "🎉x", "δelta"}), 1, 8).Draw(t, "words")
		text := strings.Join(words, " ")
		var entities []Entity
		at := 0
		for _, w := range words { // at most one kind over each word, of the kinds that have delimiters
			if kind := rapid.SampledFrom([]Kind{"", Bold, Italic, Strikethrough, Code, Link}).Draw(t, "kind"); kind != "" {
				e := Entity{Kind: kind, Offset: at, Length: Len(w)}
				if kind == Link {
					e.URL = "https://e.org/x"
				}
				entities = append(entities, e)
			}
			at += Len(w) + 1
		}
		if around := rapid.SampledFrom([]Kind{"", Bold, Italic}).Draw(t, "around"); around != "" && !slices.ContainsFunc(entities, func(e Entity) bool { return e.Kind == around || e.Kind.raw() }) {
			entities = append([]Entity{{Kind: around, Length: Len(text)}}, entities...)
		}
		got := Markdown(Source(Text{text, entities}))
		if byPlace := func(a, b Entity) int {
			return (a.Offset-b.Offset)*100 + b.Length - a.Length + strings.Compare(string(a.Kind), string(b.Kind))
		}; got.Text == text {
			slices.SortFunc(got.Entities, byPlace)
			slices.SortFunc(entities, byPlace)
		}
		if got.Text != text || !slices.Equal(got.Entities, entities) {
			t.Fatalf("%q with %+v\nbecame %q\nwhich shows %q with %+v", text, entities, Source(Text{text, entities}), got.Text, got.Entities)
		}
	})
}
