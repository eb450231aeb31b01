package render

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// outline writes blocks one per line, nested ones indented below.
func outline(blocks []Block) string {
	var b strings.Builder
	outlineTo(&b, blocks, "")
	return b.String()
}

func outlineTo(b *strings.Builder, blocks []Block, indent string) {
	for _, block := range blocks {
		head := string(block.Kind)
		if block.Level > 0 {
			head += fmt.Sprint(" ", block.Level)
		}
		head = strings.TrimSpace(head + " " + block.Language)
		fmt.Fprintf(b, "%s%s: %s\n", indent, head, strings.ReplaceAll(notation(block.Text), "\n", "\n"+indent+"  "))
		outlineTo(b, block.Blocks, indent+"  ")
		for _, item := range block.Items {
			fmt.Fprintf(b, "%s  %s\n", indent, []string{fmt.Sprintf("item %d", item.Number), "to do", "done"}[item.Box])
			outlineTo(b, item.Blocks, indent+"    ")
		}
		for _, row := range block.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, map[string]string{"left": "<", "center": "^", "right": ">"}[c.Align]+map[bool]string{true: "*"}[c.Header]+notation(c.Text))
			}
			fmt.Fprintf(b, "%s  | %s\n", indent, strings.Join(cells, " | "))
		}
	}
}

// Each case of testdata/markdown also has the blocks of a rich message.
func TestBlocksOfMarkdown(t *testing.T) {
	files, err := filepath.Glob("testdata/markdown/*/in.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			blocks := blocksOf(string(src), false)
			if err := checkBlocks(blocks, 1); err != nil {
				t.Error(err)
			}
			golden(t, filepath.Join(dir, "rich.txt"), outline(blocks))
		})
	}
}

// checkBlocks returns an error if Telegram would reject blocks at a depth. It ignores their size.
func checkBlocks(blocks []Block, depth int) error {
	if depth > richDepth && len(blocks) > 0 {
		return fmt.Errorf("blocks at the depth %d", depth)
	}
	for _, b := range blocks {
		if err := b.check(depth); err != nil {
			return fmt.Errorf("%s: %w", b.Kind, err)
		}
	}
	return nil
}

func (b Block) check(depth int) error {
	if slices.ContainsFunc(b.Text.Entities, func(e Entity) bool { return e.Kind == Pre || e.Kind.quote() }) {
		return fmt.Errorf("it has a block inside its text: %s", notation(b.Text))
	}
	if err := check(b.Text); err != nil {
		return err
	}
	switch b.Kind {
	case Paragraph, Heading, PreBlock:
		if IsBlank(b.Text.Text) {
			return fmt.Errorf("it is blank")
		}
	case QuoteOf, Details:
		if len(b.Blocks) == 0 {
			return fmt.Errorf("it is empty")
		}
	case List:
		for _, item := range b.Items {
			if err := checkBlocks(item.Blocks, depth+2); err != nil || len(item.Blocks) == 0 {
				return fmt.Errorf("item %+v: %w", item, err)
			}
		}
	case TableOf:
		for _, row := range b.Rows {
			if len(row) == 0 || len(row) > richColumns {
				return fmt.Errorf("a row has %d cells", len(row))
			}
		}
	}
	return checkBlocks(b.Blocks, depth+1)
}

// Any source becomes blocks that Telegram accepts, and fits into a rich message.
func TestBlocksAreValidForAnySource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSource(t, "source")
		if n := rapid.SampledFrom([]int{1, 1, 300, 3000}).Draw(t, "times"); n > 1 {
			src = strings.Repeat(src+rapid.SampledFrom([]string{"", " ", "\n", "\n\n"}).Draw(t, "between"), n)
			src = src[:min(len(src), 1<<17)]
		}
		blocks := blocksOf(src, false)
		left := Block{Kind: Paragraph, Text: Plain("left out")}
		fit, cut := FitBlocks(append([]Block{Fold(Plain("ls"), Block{Kind: PreBlock, Text: Plain(strings.Repeat("x", 5000))})}, blocks...), left)
		if err := checkBlocks(fit, 1); err != nil {
			t.Fatalf("%v\nsource %q", err, src)
		}
		if s := sizeOf(fit); !s.within(extent{RichLimit, RichBlocks}) {
			t.Fatalf("blocks of the size %+v fit, cut %v\nsource %q", s, cut, src)
		}
	})
}

// The blocks contain every word of the source, in order.
func TestBlocksLoseNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(drawPieces(t, "source"), "")
		want := words.FindAllString(src, -1)
		got := words.FindAllString(regexp.MustCompile(`‹text_link ([^›]*)›([^‹]*)‹/text_link›`).ReplaceAllString(outline(blocksOf(src, false)), "$2 $1 "), -1)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Compact(want), slices.Compact(got), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\nsource %q\nblocks\n%s", diff, src, outline(blocksOf(src, false)))
		}
	})
}

func TestFitBlocks(t *testing.T) {
	para := func(n int, mark string) Block {
		return Block{Kind: Paragraph, Text: Plain(mark + strings.Repeat("x", n-1))}
	}
	output := func(n int, mark string) Block {
		return Fold(Plain(mark), Block{Kind: PreBlock, Text: Plain(strings.Repeat("o", n))})
	}
	rows := func(n int) Block {
		return Block{Kind: TableOf, Rows: slices.Repeat([][]Cell{{{Text: Plain("cell"), Align: "left"}}}, n)}
	}
	left := Block{Kind: Paragraph, Text: Plain("…")}
	for _, c := range []struct {
		name string
		in   []Block
		want []string // kinds and first letters
		cut  bool
	}{
		{"what fits stays", []Block{para(RichLimit, "a")}, []string{"paragraph a"}, false},
		{"the oldest output goes first", []Block{output(20000, "a"), para(9000, "b"), output(20000, "c")}, []string{"paragraph a", "paragraph b", "details c"}, false},
		{"the middle goes last", []Block{para(20000, "a"), para(9000, "b"), para(20000, "c"), para(5000, "d")}, []string{"paragraph a", "paragraph b", "paragraph …", "paragraph d"}, true},
		{"one long block keeps both ends", []Block{para(50000, "a")}, []string{"paragraph a", "paragraph …", "paragraph x"}, true},
		{"a table keeps its beginning", []Block{rows(600), para(10, "b")}, []string{"table ", "paragraph …", "paragraph b"}, true},
	} {
		fit, cut := FitBlocks(c.in, left)
		var got []string
		for _, b := range fit {
			got = append(got, string(b.Kind)+" "+string([]rune(b.Text.Text)[:min(len(b.Text.Text), 1)]))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || cut != c.cut {
			t.Errorf("%s: cut %v, %s", c.name, cut, diff)
		}
	}
}
