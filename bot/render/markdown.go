package render

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var sharedParser = sync.OnceValue(newParser)

// Markdown renders src: GitHub-flavoured Markdown as far as Telegram can show it. Any source gives a valid
// Text, also one that ends in the middle of something. Nothing written is lost but markup: what cannot be
// formatted is shown as text (links to places Telegram does not take as "label (address)", images so too,
// HTML and reference definitions literally). Line breaks stay line breaks. Safe for concurrent use.
func Markdown(src string) Text {
	if len(src) > maxBlock {
		s := Stream{}
		s.Append(src)
		return s.Text()
	}
	clean := []byte(cleanSource(src))
	r := &renderer{source: clean, out: &builder{}}
	for n := parse(clean, false).FirstChild(); n != nil; n = n.NextSibling() {
		r.topLevel(n)
	}
	return r.out.text()
}

// parse reads a source, with the marks of files in it or with those as text.
func parse(source []byte, marks bool) ast.Node {
	shared := sharedParser() // first: it makes keys that a context has room for
	pc := parser.NewContext()
	if marks {
		pc.Set(marksWanted, marks)
	}
	return shared.Parse(text.NewReader(source), parser.WithContext(pc))
}

// renderer writes the blocks of one source into a builder.
type renderer struct {
	source []byte
	out    *builder
	indent string // of lines inside list items
	inCell bool   // of a table, where code may escape pipes
	apart  bool   // the first block that wrote something stands behind an empty line
}

// topLevel writes a child of the document. What it writes depends on the block and on the line before it
// only, which is what lets Stream keep it.
func (r *renderer) topLevel(n ast.Node) {
	mark := len(r.out.buf)
	apart := blankBefore(r.source, lineStart(r.source, n.Pos()))
	if mark > 0 {
		r.separate(apart)
	} else {
		r.apart = apart
	}
	r.out.start = len(r.out.buf)
	r.block(n)
	if len(r.out.buf) == r.out.start {
		r.rewind(mark)
	}
	r.out.start = -1
}

func (r *renderer) rewind(mark int) {
	r.out.units -= unitsOf(r.out.buf[mark:])
	r.out.buf = r.out.buf[:mark]
}

// separate ends the line, and leaves one empty if the source does.
func (r *renderer) separate(blank bool) {
	r.out.write("\n")
	if blank {
		r.out.write("\n")
	}
	r.out.write(r.indent)
}

func lineStart(source []byte, pos int) int {
	pos = min(max(pos, 0), len(source))
	return bytes.LastIndexByte(source[:pos], '\n') + 1
}

// blankBefore says whether the line that ends at start is blank; there being none counts as blank.
func blankBefore(source []byte, start int) bool {
	if start == 0 {
		return true
	}
	from := bytes.LastIndexByte(source[:start-1], '\n') + 1
	return len(bytes.TrimSpace(source[from:start])) == 0
}

// children writes the blocks inside n. The line is begun already.
func (r *renderer) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := len(r.out.buf)
		if c != n.FirstChild() && mark > r.out.start {
			r.separate(c.HasBlankPreviousLines())
		}
		from := len(r.out.buf)
		r.block(c)
		if len(r.out.buf) == from {
			r.rewind(mark)
		}
	}
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.out.begin(Bold, "")
		r.inlines(n)
		r.out.end()
	case *ast.FencedCodeBlock:
		r.fenced(n)
	case *ast.CodeBlock:
		r.pre("", linesOf(n, r.source))
	case *ast.Blockquote:
		r.quote(n)
	case *ast.List:
		r.list(n)
	case *ast.ThematicBreak:
		r.out.write("———")
	case *table:
		r.table(n)
	default:
		r.inlines(n)
	}
}

func (r *renderer) quote(n ast.Node) {
	from := bytes.LastIndexByte(r.out.buf, '\n') + 1
	r.out.beginAt(Blockquote, from, r.out.units-unitsOf(r.out.buf[from:]))
	r.children(n)
	r.out.end()
}

// fenced writes a block of code. The first word behind the fence is its language, the rest is shown.
func (r *renderer) fenced(n *ast.FencedCodeBlock) {
	const longestLanguage = 32
	language, rest := "", ""
	if n.Info != nil {
		info := unescape(n.Info.Segment.Value(r.source))
		language, rest, _ = strings.Cut(info, " ")
	}
	if len(language) > longestLanguage || !isClean(language) {
		language, rest = "", strings.TrimSpace(language+" "+rest)
	}
	code := linesOf(n, r.source)
	if IsBlank(code) {
		language, rest = "", language+" "+rest // nothing to carry the language
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		r.out.write(rest)
		if !IsBlank(code) {
			r.separate(false)
		}
	}
	r.pre(language, code)
}

// pre writes code on lines of its own, without the indentation of the list it may be in.
func (r *renderer) pre(language, code string) {
	code = strings.Trim(code, "\n")
	if IsBlank(code) {
		return
	}
	r.ownLine()
	r.out.raw(Pre, language, code)
}

// ownLine makes sure that nothing but indentation was written on the line, and takes that back.
func (r *renderer) ownLine() {
	from := bytes.LastIndexByte(r.out.buf, '\n') + 1
	if from <= r.out.start {
		from = max(r.out.start, 0)
	}
	if IsBlank(string(r.out.buf[from:])) {
		r.rewind(from)
		return
	}
	r.out.write("\n")
}

func linesOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(source))
	}
	return Plain(b.String()).Text
}

func (r *renderer) list(n *ast.List) {
	number := n.Start - 1
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() {
			r.separate(c.HasBlankPreviousLines())
		}
		marker := bullet(c)
		if n.IsOrdered() {
			number = numberAfter(number, c)
			marker = strconv.Itoa(number) + string(n.Marker) + " "
		}
		r.out.write(marker)
		outer := r.indent
		r.indent += strings.Repeat(" ", max(2, Len(marker)))
		r.children(c)
		r.indent = outer
	}
}

// numberAfter is the number of an item that follows one with number last: the written one, but never a number twice.
func numberAfter(last int, item ast.Node) int {
	written, _ := item.Attribute(numberAttribute)
	number, _ := written.(int)
	return max(last+1, number)
}

// bullet is the marker of an unordered item; a task box stands for itself.
func bullet(item ast.Node) string {
	if first := item.FirstChild(); first != nil {
		if _, ok := first.FirstChild().(*taskBox); ok {
			return ""
		}
	}
	return "• "
}
