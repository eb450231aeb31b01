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

// Markdown renders GitHub-flavoured Markdown. The result is valid for any source, even if it ends in the middle of a
// link or code block. Content that Telegram cannot format becomes text: images and rejected links become "label
// (address)", and HTML and link reference definitions stay as written. Line breaks stay. Markdown is safe for
// concurrent use.
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

// parse parses Markdown. If withFileMarks is false, file marks are ordinary text.
func parse(source []byte, withFileMarks bool) ast.Node {
	shared := sharedParser() // must come first, because sharedParser registers the keys of the context
	pc := parser.NewContext()
	if withFileMarks {
		pc.Set(marksWanted, withFileMarks)
	}
	return shared.Parse(text.NewReader(source), parser.WithContext(pc))
}

type renderer struct {
	source []byte
	out    *builder
	indent string // white space before each line, inside of lists
	inCell bool   // inside a table cell, where \| in code means |
	apart  bool   // true if an empty line in the source precedes the first block
}

// topLevel writes one block at the top level of the document. The rendering depends only on the block and on whether an
// empty line precedes the block, so that Stream can reuse the rendering.
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

// separate starts a new line, after an empty line if blank is true.
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

// blankBefore reports whether the line at the offset start follows a blank line. It also returns true at the start of
// the source.
func blankBefore(source []byte, start int) bool {
	if start == 0 {
		return true
	}
	from := bytes.LastIndexByte(source[:start-1], '\n') + 1
	return len(bytes.TrimSpace(source[from:start])) == 0
}

// children writes the blocks inside n. It continues the current line with the first block.
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

// fenced writes a fenced code block. The first word after the fence is the language of the code. fenced writes the
// other words above the code.
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
		language, rest = "", language+" "+rest // the block contains no code, so show its language as text
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		r.out.write(rest)
		if !IsBlank(code) {
			r.separate(false)
		}
	}
	r.pre(language, code)
}

// pre writes code on separate lines. The lines are not indented, even inside a list.
func (r *renderer) pre(language, code string) {
	code = strings.Trim(code, "\n")
	if IsBlank(code) {
		return
	}
	r.ownLine()
	r.out.raw(Pre, language, code)
}

// ownLine starts a new line. If the current line contains only indentation, ownLine removes the indentation and starts
// no new line.
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

// numberAfter returns the number of a list item that follows an item with the number last. It returns the number in the
// source, but at least last+1.
func numberAfter(last int, item ast.Node) int {
	written, _ := item.Attribute(numberAttribute)
	number, _ := written.(int)
	return max(last+1, number)
}

// bullet returns the text before an item of an unordered list. The text is empty if the item has a checkbox.
func bullet(item ast.Node) string {
	if first := item.FirstChild(); first != nil {
		if _, ok := first.FirstChild().(*taskBox); ok {
			return ""
		}
	}
	return "• "
}
