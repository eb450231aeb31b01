package render

import (
	"slices"
	"strings"
	"testing"

	"ductor/internal/sim/hostile"
)

// Any bytes render to a valid text, which is the same for a stream cut in two, and splits by the law.
func FuzzMarkdown(f *testing.F) {
	for _, m := range markup {
		f.Add("a"+m+"b\n\n"+m+" c", 3)
	}
	f.Add(hostile.Answer(2000), 700)
	f.Fuzz(func(t *testing.T, src string, cut int) {
		text := Markdown(src)
		if err := check(text); err != nil {
			t.Fatalf("%v: %q", err, notation(text))
		}
		cut = min(max(cut, 0), len(src))
		var s Stream
		s.Append(src[:cut])
		s.Text()
		s.Append(src[cut:])
		if got := s.Text(); notation(got) != notation(text) {
			t.Fatalf("stream %q\nwhole %q", notation(got), notation(text))
		}
		s.Retract(len(src) - cut)
		if got, want := s.Text(), Markdown(src[:cut]); notation(got) != notation(want) {
			t.Fatalf("retracted %q\nwhole %q", notation(got), notation(want))
		}
	})
}

// Any text with any entities splits into valid messages that join to the text.
func FuzzSplit(f *testing.F) {
	f.Add("one two\n\nthree four", 3, 9, byte(1), 16)
	f.Add("   code\n   more\n\n\n      x", 0, 20, byte(4), 17)
	f.Add("👩‍👩‍👧🇩🇪🇫🇷e\u0301\u0301 \u200b", 2, 8, byte(0), 16)
	kinds := []Kind{Bold, Italic, Strikethrough, Code, Pre, Blockquote, Expandable}
	f.Fuzz(func(t *testing.T, s string, from, length int, kind byte, limit int) {
		limit = min(max(limit, 16), 5000)
		plain := Plain(s)
		from = min(max(from, 0), Len(plain.Text))
		to := from + min(max(length, 0), 1<<20)
		text := Concat(Slice(plain, 0, from), Wrap(kinds[int(kind)%len(kinds)], Slice(plain, from, to)), Slice(plain, to, 1<<30))
		var joined strings.Builder
		for i, p := range Split(text, limit) {
			if err := checkMessage(p.Text, limit); err != nil {
				t.Fatalf("part %d: %v: %q", i, err, notation(p.Text))
			}
			joined.WriteString(p.Text.Text + p.Gap)
		}
		if lead, ok := strings.CutSuffix(text.Text, joined.String()); !ok || !IsBlank(lead) {
			t.Fatalf("joined %q, original %q", joined.String(), text.Text)
		}
		if got := Concat(Slice(text, 0, from), Slice(text, from, 1<<30)); got.Text != text.Text {
			t.Fatalf("slices %q, original %q", got.Text, text.Text)
		}
		if !slices.IsSortedFunc(text.Entities, func(a, b Entity) int { return a.Offset - b.Offset }) {
			t.Fatal("entities are not in order")
		}
	})
}
