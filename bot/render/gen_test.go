package render

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// markup is the material of generated sources besides words.
var markup = []string{
	"*", "**", "***", "_", "__", "~~", "~", "`", "``", "```", "````", "~~~", "[", "]", "(", ")", "![", "](", "](https://a.example/p_q)",
	"](src/main.go)", "](tg://resolve)", "<https://b.example>", "<br>", "<div>", "</div>", "<!--", "-->", "<", ">", "\\", "|", "||", "\\|",
	"|-|", "|--|:-:|", "\n|--|--|\n", "-", "- ", "+ ", "* ", "1. ", "7) ", "# ", "### ", " #", "> ", ">", "=", "===", "---", "***\n", "- [ ] ",
	"- [x] ", "```go\n", "```c++\n", "```\n", "````md\n", "\n```\n", ":", ".", "!", "。", "“", "\"", "'", "&amp;", "&#32;", "&#0;", "&", "{", "}",
	" ", " ", " ", "  ", "    ", "\t", "\n", "\n", "\n", "\n\n", "\n\n", "\n\n\n", "  \n", "\\\n", "\r\n", "\n   ", "\n  ", "\n\t",
	"\x00", "\x1b[0m", "\xff", "\xe2\x82", "\u202e", "\u200b", "\u00a0", "é", "e\u0301", "中文", "한", "👩‍👩‍👧", "🇩🇪", "👍🏽", "😀", "://", "https://c.example/_d_",
}

// drawSource generates Markdown of any kind, a mix of words and markup that is mostly malformed.
func drawSource(t *rapid.T, label string) string {
	return strings.Join(drawPieces(t, label), "")
}

// drawPieces is drawSource in pieces. The words are wNw, with increasing N.
func drawPieces(t *rapid.T, label string) []string {
	n := 0
	piece := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 2).Draw(t, "word") == 0 {
			n++
			return fmt.Sprintf("w%dw", n)
		}
		return rapid.SampledFrom(markup).Draw(t, "markup")
	})
	return rapid.SliceOfN(piece, 0, 60).Draw(t, label)
}

// drawText generates a Text with entities of all kinds. It comes from Markdown or from Wrap.
func drawText(t *rapid.T, label string) Text {
	pieces := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Text {
		text := Markdown(drawSource(t, "source"))
		switch rapid.IntRange(0, 6).Draw(t, "wrap") {
		case 0:
			return Wrap(rapid.SampledFrom([]Kind{Blockquote, Expandable, Strikethrough, Italic, Bold}).Draw(t, "kind"), text)
		case 1:
			return CodeBlock("go", "    "+text.Text)
		case 2:
			return Plain(strings.Repeat(rapid.SampledFrom([]string{"a", " ", "\n", "👩‍👩‍👧", "e\u0301", "🇩🇪", "word ", "Ein Satz. "}).Draw(t, "unit"),
				rapid.IntRange(0, 80).Draw(t, "times")))
		}
		return text
	}), 1, 6).Draw(t, label)
	joined := pieces[:1]
	for _, p := range pieces[1:] {
		joined = append(joined, Plain(rapid.SampledFrom([]string{"", " ", "\n", "\n\n", "  \n \n"}).Draw(t, "between")), p)
	}
	return Concat(joined...)
}

// notation returns t with its entities as tags: ‹bold›like this‹/bold›.
func notation(t Text) string {
	var b strings.Builder
	var open []Entity
	c := cursor{text: t.Text}
	closeUpTo := func(unit int) {
		for len(open) > 0 && open[len(open)-1].End() <= unit {
			e := open[len(open)-1]
			b.WriteString(c.take(e.End()) + "‹/" + string(e.Kind) + "›")
			open = open[:len(open)-1]
		}
	}
	for _, e := range t.Entities {
		closeUpTo(e.Offset)
		b.WriteString(c.take(e.Offset) + "‹" + strings.TrimRight(string(e.Kind)+" "+e.URL+e.Language, " ") + "›")
		open = append(open, e)
	}
	closeUpTo(1 << 40)
	return b.String() + c.take(1<<40)
}
