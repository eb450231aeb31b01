package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitPlaces(t *testing.T) {
	fence := "```go\n" + "line one\n\nline two\nline three\n" + "```"
	for name, c := range map[string]struct {
		src   string
		limit int
		want  []string // parts in notation, with their gaps after a bar
	}{
		"short":                     {"one two", 16, []string{"one two|"}},
		"exactly full":              {"aaaa bbbb cccc d", 16, []string{"aaaa bbbb cccc d|"}},
		"at a paragraph":            {"one two three\n\nfour five six", 20, []string{"one two three|\n\n", "four five six|"}},
		"a line before a word":      {"one two three\nfour five six", 20, []string{"one two three|\n", "four five six|"}},
		"a sentence before a word":  {"One two. Three four five six", 20, []string{"One two.| ", "Three four five six|"}},
		"a word":                    {"onetwo threefour fivesix", 20, []string{"onetwo threefour| ", "fivesix|"}},
		"no place at all":           {strings.Repeat("x", 20), 16, []string{strings.Repeat("x", 16) + "|", "xxxx|"}},
		"an early paragraph is not": {"a\n\nbbbbbbbb cccccccc dddd", 22, []string{"a\n\nbbbbbbbb cccccccc| ", "dddd|"}},
		"a surrogate pair":          {strings.Repeat("x", 15) + "😀", 16, []string{strings.Repeat("x", 15) + "|", "😀|"}},
		"a family":                  {strings.Repeat("x", 10) + "👩‍👩‍👧", 16, []string{strings.Repeat("x", 10) + "|", "👩‍👩‍👧|"}},
		"flags":                     {strings.Repeat("🇩🇪", 5), 18, []string{strings.Repeat("🇩🇪", 4) + "|", "🇩🇪|"}},
		"a skin":                    {strings.Repeat("x", 14) + "👍🏽", 16, []string{strings.Repeat("x", 14) + "|", "👍🏽|"}},
		"an accent":                 {strings.Repeat("x", 15) + "e\u0301", 16, []string{strings.Repeat("x", 15) + "|", "e\u0301|"}},
		"bold goes on": {"**one two three four five**", 16,
			[]string{"‹bold›one two three‹/bold›| ", "‹bold›four five‹/bold›|"}},
		"a link goes on": {"[one two three four](https://a.example)", 16,
			[]string{"‹text_link https://a.example›one two three‹/text_link›| ", "‹text_link https://a.example›four‹/text_link›|"}},
		"code is reopened": {fence, 20,
			[]string{"‹pre go›line one\n\nline two‹/pre›|\n", "‹pre go›line three‹/pre›|"}},
		"code keeps its indentation": {"```\nif true {\n    return nil\n}\n```", 16,
			[]string{"‹pre›if true {‹/pre›|\n", "‹pre›    return nil\n}‹/pre›|"}},
		"code moves as a whole": {"Words before it.\n\n```\none\ntwo\n```", 22,
			[]string{"Words before it.|\n\n", "‹pre›one\ntwo‹/pre›|"}},
		"a quote goes on": {"> one two three\n> four **five**", 16,
			[]string{"‹blockquote›one two three‹/blockquote›|\n", "‹blockquote›four ‹bold›five‹/bold›‹/blockquote›|"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Split(Markdown(c.src), c.limit) {
				got = append(got, notation(p.Text)+"|"+p.Gap)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A competitor had this defect: for an answer of 25 paragraphs, one of them longer than a message, the start came
// twice, some paragraphs never, and the long one out of order.
func TestSplitShowsEveryParagraphOnceInOrder(t *testing.T) {
	var src strings.Builder
	var want []string
	for i := range 25 {
		n := 60
		if i == 7 {
			n = 3000
		}
		for j := range n {
			word := fmt.Sprintf("p%dw%d", i, j)
			want = append(want, word)
			src.WriteString(word + " ")
		}
		src.WriteString("\n\n")
	}
	var got []string
	for _, p := range Split(Markdown(src.String()), 4096) {
		got = append(got, strings.Fields(p.Text.Text)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A word as long as a message does not leave the few words before it in a message of their own.
func TestSplitCutsALongWordBehindFewWords(t *testing.T) {
	for _, src := range []string{"Bash\n", "```\necho ", "Look, this is it:\n\n"} {
		parts := Split(Markdown(src+strings.Repeat("x", 9000)), 4096)
		if len(parts) != 3 || Len(parts[0].Text.Text) != 4096 {
			t.Errorf("%q and a long word are %d parts, the first with %d units", src, len(parts), Len(parts[0].Text.Text))
		}
	}
	if parts := Split(Plain("Look, this is it:\n\n"+strings.Repeat("x", 3800)+"\n\n"+strings.Repeat("y ", 500)), 4096); len(parts) != 2 {
		t.Errorf("a word that leaves room for what is before it: %d parts", len(parts))
	}
}

func TestSplitGivesNothingForNothing(t *testing.T) {
	for _, s := range []string{"", " ", "\n\n", "\u200b \u00a0"} {
		if parts := Split(Plain(s), 4096); len(parts) != 0 {
			t.Errorf("%q: %d parts", s, len(parts))
		}
	}
}

func TestAPartEndsWhereItsEntitiesAreFull(t *testing.T) {
	text := Markdown(strings.Repeat("*i* ", 120) + "~~no~~ `code` [link](https://a.example)")
	kinds := map[Kind]int{}
	for i, p := range Split(text, 4096) {
		if want := []int{MaxEntities, 23}[i]; len(p.Entities) != want {
			t.Errorf("part %d has %d entities, not %d", i, len(p.Entities), want)
		}
		for _, e := range p.Entities {
			kinds[e.Kind]++
		}
	}
	if diff := cmp.Diff(map[Kind]int{Italic: 120, Strikethrough: 1, Code: 1, Link: 1}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestSplitNeverDropsLinks(t *testing.T) {
	for name, src := range map[string]string{
		"many": strings.Repeat("[a](https://a.example) ", 250),
		"long": strings.Repeat("[a](https://a.example/"+strings.Repeat("x", 900)+") ", 30),
	} {
		t.Run(name, func(t *testing.T) {
			text := Markdown(src)
			links := 0
			for _, p := range Split(text, 4096) {
				bytes := 0
				for _, e := range p.Entities {
					bytes += len(e.URL)
					links++
				}
				if bytes > maxAttributes {
					t.Errorf("%d bytes of addresses in a part", bytes)
				}
			}
			if links != len(text.Entities) || links != strings.Count(src, "[") {
				t.Errorf("%d links of %d", links, strings.Count(src, "["))
			}
		})
	}
}

// Text followed only by whitespace is complete. Otherwise appending to it would move its cut.
func TestSplitCountsNoWhitespaceAtTheEnd(t *testing.T) {
	parts := Split(Plain("aaaaaaaaaaa\n\nbbbbbbb\n"), 20)
	if len(parts) != 1 || parts[0].Gap != "\n" {
		t.Errorf("%+v", parts)
	}
}
