package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// Any source, cut anywhere, renders to a text that Telegram accepts unchanged.
func TestMarkdownIsValidAtEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t, "source")
		src = src[:rapid.IntRange(0, len(src)).Draw(t, "cut")]
		text := Markdown(src)
		if err := check(text); err != nil {
			t.Fatalf("%v\nsource %q\ntext %q", err, src, notation(text))
		}
		if text.Text == "" {
			return
		}
		if err := checkMessage(Text{Text: text.Text, Entities: text.Entities[:min(len(text.Entities), MaxEntities)]}, 1<<20); err != nil && !IsBlank(text.Text) {
			t.Fatalf("%v\nsource %q\ntext %q", err, src, notation(text))
		}
	})
}

var (
	words     = regexp.MustCompile(`w\d+w`)
	reordered = regexp.MustCompile("\\||(```|~~~).*w\\d+w.*w\\d+w")
)

// The text contains every word of the source, in order. Words of addresses count where their link is. Wide tables
// repeat their headers, and words after a fence's language appear above the code.
func TestMarkdownLosesNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(drawPieces(t, "source"), "")
		want := words.FindAllString(src, -1)
		got := words.FindAllString(expanded(Markdown(src)), -1)
		if reordered.MatchString(src) {
			slices.Sort(want)
			slices.Sort(got)
			got = slices.Compact(got)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\nsource %q\ntext %q", diff, src, notation(Markdown(src)))
		}
	})
}

// expanded returns t with languages before their code and addresses after their links.
func expanded(t Text) string {
	s := strings.NewReplacer("‹/text_link›", "\x01").Replace(notation(t))
	s = regexp.MustCompile(`‹text_link ([^›]*)›([^\x01]*)\x01`).ReplaceAllString(s, "$2 $1 ")
	return regexp.MustCompile(`‹(pre [^›]*|)[^›]*›`).ReplaceAllString(s, "$1")
}

// A stream fed in any pieces, rendered and retracted at any time, equals Markdown.
func TestStreamEqualsMarkdown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t, "source")
		s := Stream{most: rapid.SampledFrom([]int{0, 0, 16, 40}).Draw(t, "most")} // bytes of a block
		whole := func(src string) Text {
			once := Stream{most: s.most}
			once.Append(src)
			return once.Text()
		}
		var fed string
		for step := 0; len(src) > 0; step++ {
			n := rapid.IntRange(1, len(src)).Draw(t, "piece")
			s.Append(src[:n])
			fed, src = fed+src[:n], src[n:]
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				back := rapid.IntRange(0, len(fed)).Draw(t, "back")
				s.Retract(back)
				fed = fed[:len(fed)-back]
			case 1, 2:
				same(t, fed, whole(fed), s.Text())
			}
		}
		same(t, fed, whole(fed), s.Text())
		if s.most == 0 {
			same(t, fed, Markdown(fed), s.Text())
		}
		if s.Source() != fed || s.Len() != len(fed) {
			t.Fatalf("source %q, want %q", s.Source(), fed)
		}
	})
}

// However short blocks may be, every word is in the text once, and the text is valid.
func TestADividedBlockLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.StringOfN(rapid.SampledFrom([]rune("ab é😀\n ")), 0, 300, -1).Draw(t, "source")
		if rapid.Bool().Draw(t, "code") {
			src = "```go\nx" + src // a block of blanks shows its language
		}
		s := Stream{most: rapid.SampledFrom([]int{12, 16, 40}).Draw(t, "most")}
		s.Append(src)
		if err := check(s.Text()); err != nil {
			t.Fatalf("%v\nsource %q\ntext %q", err, src, notation(s.Text()))
		}
		visible := func(text string) string { return strings.Join(strings.Fields(text), "") }
		if got, want := visible(s.Text().Text), visible(strings.TrimPrefix(src, "```go\n")); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func same(t *rapid.T, src string, want, got Text) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s\nsource %q", diff, src)
	}
}

// Parts fit, have visible content, join to the original and preserve its formatting.
func TestSplitKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		limit := rapid.IntRange(16, 200).Draw(t, "limit")
		parts := Split(text, limit)
		var joined strings.Builder
		for i, p := range parts {
			if err := checkMessage(p.Text, limit); err != nil {
				t.Fatalf("part %d: %v\n%q\nof %q", i, err, notation(p.Text), notation(text))
			}
			if !IsBlank(p.Gap) {
				t.Fatalf("part %d: gap %q is not blank", i, p.Gap)
			}
			joined.WriteString(p.Text.Text + p.Gap)
		}
		lead, ok := strings.CutSuffix(text.Text, joined.String())
		if !ok || !IsBlank(lead) {
			t.Fatalf("joined %q\noriginal %q", joined.String(), text.Text)
		}
		want := slices.DeleteFunc(styles(text), func(s string) bool { return s == "" })
		var got []string
		for _, p := range parts {
			got = append(got, slices.DeleteFunc(styles(p.Text), func(s string) bool { return s == "" })...)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n%q at %d", diff, notation(text), limit)
		}
	})
}

// styles lists the entities over each visible character; "" for blanks.
func styles(t Text) []string {
	var out []string
	unit := 0
	for _, r := range t.Text {
		s := ""
		if !blank(r) {
			var over []string
			for _, e := range t.Entities {
				if e.Offset <= unit && unit < e.End() {
					over = append(over, fmt.Sprintf("%s%s%s", e.Kind, e.URL, e.Language))
				}
			}
			slices.Sort(over)
			s = fmt.Sprintf("%c %v", r, over)
		}
		out = append(out, s)
		unit += runeUnits(r)
	}
	return out
}

// Appending changes only the last part.
func TestSplitIsPrefixStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		limit := rapid.IntRange(16, 120).Draw(t, "limit")
		from := rapid.IntRange(0, Len(text.Text)).Draw(t, "from")
		whole := Split(text, limit)
		before := Split(Slice(text, 0, from), limit)
		for i := 0; i < len(before)-1; i++ {
			if i >= len(whole) || cmp.Diff(before[i], whole[i], cmpopts.EquateEmpty()) != "" {
				t.Fatalf("part %d changed: %s\n%q + %q", i, cmp.Diff(before[i], whole[i]), notation(Slice(text, 0, from)), notation(Slice(text, from, 1<<30)))
			}
		}
	})
}

// Builders return valid texts for valid texts.
func TestBuildersKeepValidity(t *testing.T) {
	kinds := []Kind{Bold, Italic, Strikethrough, Code, Pre, Blockquote, Expandable}
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		from := rapid.IntRange(0, 100).Draw(t, "from")
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		for name, got := range map[string]Text{
			"text": text, "wrapped": Wrap(kind, text), "sliced": Slice(text, from, from+limit), "shortened": Shorten(text, limit),
			"styled": Styled(kind, text.Text), "plain": Plain(text.Text),
		} {
			if err := check(got); err != nil {
				t.Fatalf("%s: %v\n%q", name, err, notation(got))
			}
		}
		if n := Len(Shorten(text, limit).Text); n > limit {
			t.Fatalf("shortened to %d, want %d at most", n, limit)
		}
		if got := Wrap(kind, text).Text; got != text.Text {
			t.Fatalf("wrapping changed the text: %q, want %q", got, text.Text)
		}
	})
}
