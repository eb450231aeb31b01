package render

import (
	"fmt"
	"strings"
	"testing"
)

// answer is what an agent writes in a long answer: headings, paragraphs, lists, code, a table; n bytes or a
// little more.
func answer(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "## Step %d: the `reader`\n\nThe **reader** takes *one* line at a time, see [the docs](https://go.dev/doc/%d), and "+
			"hands it on.\nIt never blocks longer than 2*3*4 ms.\n\n- first, `open(path_%d)`\n- then **read**\n  - and close\n\n"+
			"```go\nfunc read%d(r io.Reader) error {\n\tfor {\n\t\tif err := step(r); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n}\n```\n\n"+
			"| name | cost |\n|---|---:|\n| read | %d |\n| 写 | 2 |\n\n> Note: *never* twice.\n\n", i, i, i, i, i)
	}
	return b.String()
}

const size = 100_000 // of what benchmarks measure

// shapes are sources of about size bytes: the common one, one single block of each sort, and the hostile
// ones that make parsers quadratic.
func shapes(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)+1)[:size] }
	lines := func(s string) string { return fill(s + "\n") }
	return map[string]string{
		"answer":      answer(size),
		"words":       fill("one **two** three `four` "),
		"code":        "```go\n" + lines("\tif err := step(r); err != nil {"),
		"list":        lines("- an item with `code` and **bold** words in it"),
		"table":       "| a | b |\n|---|---|\n" + lines("| some | `cell` |"),
		"wide table":  "|" + fill("a|") + "\n|" + fill("-|"),
		"long header": "|" + strings.Repeat("h", 39) + "|" + strings.Repeat("i", 39) + "|\n|-|-|\n" + lines("|x|y|"),
		"brackets":    fill("["),
		"images":      fill("!["),
		"closers":     fill("]"),
		"pairs":       fill("[]"),
		"links":       fill("[a](b"),
		"titles":      fill("[a](b \""),
		"references":  fill("[a][b"),
		"stars":       fill("*"),
		"openers":     fill("*a "),
		"closing":     fill("a* "),
		"mixed":       fill("*a _b ~~c "),
		"nested":      fill("**a *b "),
		"backticks":   fill("` `` ``` ```` "),
		"ticks":       ticks(size),
		"quotes":      fill(">"),
		"quote lines": lines(strings.Repeat(">", 100)),
		"bullets":     fill("- "),
		"deep list":   deepList(size),
		"blank lines": strings.Repeat("- ", 1000) + fill("\n"),
		"tags":        fill("<a "),
		"comments":    fill("<!--"),
		"processing":  fill("<?"),
		"declaration": fill("<!A"),
		"mails":       fill("<a@b"),
		"references&": fill("&amp"),
		"backslashes": fill("\\"),
		"pipes":       fill("|"),
		"escapes":     "|a|\n|-|\n" + lines("|`\\|`|"),
		"headings":    lines("#"),
		"fences":      lines("```"),
		"setext":      lines("a\n="),
		"rules":       lines("***"),
		"newlines":    fill("\n"),
		"spaces":      fill(" ") + "x",
		"tabs":        fill("\t"),
		"bytes":       fill("\xff"),
		"returns":     fill("\r"),
		"joiners":     "👩" + fill("\u200d"),
		"accents":     "e" + fill("\u0301"),
		"urls":        fill("https://a.example/_b_*c*"),
	}
}

func ticks(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("`", i) + " ")
	}
	return b.String()
}

func deepList(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("  ", i%400) + "- x\n")
	}
	return b.String()
}

func BenchmarkMarkdown(b *testing.B) {
	for name, src := range shapes(size) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Markdown(src)
			}
		})
	}
}

// One operation is a whole answer: 5000 pieces, looked at after every 50.
func BenchmarkStream(b *testing.B) {
	for name, src := range shapes(size) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stream(src, 5000, 50, func(s *Stream) { s.Text() })
			}
		})
	}
}

func stream(src string, pieces, every int, look func(*Stream)) {
	var s Stream
	for i := range pieces {
		s.Append(src[len(src)*i/pieces : len(src)*(i+1)/pieces])
		if i%every == every-1 {
			look(&s)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, src := range shapes(size) {
		text := Markdown(src)
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				Split(text, 4096)
			}
		})
	}
}

// Every shape renders, splits and streams by the laws, at a size where a quadratic case would be felt.
func TestLargeShapesHoldTheLaws(t *testing.T) {
	for name, src := range shapes(size / 5) {
		t.Run(name, func(t *testing.T) {
			text := Markdown(src)
			if err := Check(text); err != nil {
				t.Fatal(err)
			}
			for i, p := range Split(text, 4096) {
				if err := CheckMessage(p.Text, 4096); err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
			}
			stream(src, 30, 10, func(s *Stream) {
				if got, want := s.Text(), Markdown(s.Source()); notation(got) != notation(want) {
					t.Fatal("the stream differs")
				}
			})
		})
	}
}
