package render

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits for malicious input, which could otherwise make goldmark extremely slow. Markup beyond a limit is treated as
// text. The limits apply to each paragraph, heading or table cell, so that Stream and Markdown give the same result.
const (
	maxDepth      = 24  // maximum nesting of quotes and lists
	maxDelimiters = 512 // maximum number of sequences of * _ or ~
	maxBrackets   = 512 // maximum number of characters [ and ]
	maxTags       = 256 // maximum number of characters <
	maxRun        = 8   // maximum length of a sequence of * _ or ~
)

// newParser returns a parser for CommonMark with tables, strikethrough and task lists, except for:
//   - Link reference definitions. A definition at the end of an answer would change text that the chat already shows.
//     Therefore, definitions and references are shown as written.
//   - HTML blocks. HTML is shown as written, and Markdown between HTML tags is rendered.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{parser.NewListParser()}, 300),
			util.Prioritized(numbered{parser.NewListItemParser()}, 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(fileMarks{}, 40),
			util.Prioritized(taskBoxes{}, 50),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(newBounded(links{parser.NewLinkParser()}, maxBrackets), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(newBounded(parser.NewRawHTMLParser(), maxTags), 400),
			util.Prioritized(newBounded(emphasis{}, maxDelimiters), 500),
		),
		parser.WithParagraphTransformers(util.Prioritized(tables{}, 200)),
	)
}

// shallow wraps the parser of quotes or lists. It limits the nesting of quotes and lists to maxDepth. Deeper quotes and
// lists become text.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxDepth {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// numbered stores the number of each list item as written in the source. goldmark itself stores only the first number
// of a list.
type numbered struct{ parser.BlockParser }

var numberAttribute = []byte("number")

func (n numbered) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	node, state := n.BlockParser.Open(parent, reader, pc)
	if node == nil {
		return nil, state
	}
	number, digits := 0, 0
	for _, c := range line {
		if c >= '0' && c <= '9' && digits < 9 {
			number, digits = number*10+int(c-'0'), digits+1
		} else if c != ' ' || digits > 0 {
			break
		}
	}
	if digits > 0 {
		node.SetAttribute(numberAttribute, number)
	}
	return node, state
}

// links wraps goldmark's parser of links and images. It ignores addresses and titles longer than maxAddress, because
// goldmark would parse them slowly.
type links struct{ parser.InlineParser }

// maxAddress is the maximum length of an address in bytes. Telegram accepts only shorter addresses.
const maxAddress = 4 << 10

func (l links) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, _ := block.PeekLine(); len(line) > maxAddress && line[0] == ']' && line[1] == '(' &&
		bytes.IndexByte(line[:maxAddress], ')') < 0 {
		return nil
	}
	return l.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker.
func (l links) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	l.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
}

// bounded limits how often an inline parser is used in one block.
type bounded struct {
	parser.InlineParser
	key parser.ContextKey
	max int
}

func newBounded(p parser.InlineParser, limit int) bounded {
	return bounded{InlineParser: p, key: parser.NewContextKey(), max: limit}
}

func (b bounded) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	used, _ := pc.Get(b.key).(int)
	if used >= b.max {
		return nil
	}
	pc.Set(b.key, used+1)
	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker.
func (b bounded) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	pc.Set(b.key, nil)
	if c, ok := b.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// taskBoxes parses the checkbox [ ] or [x] at the start of a list item.
type taskBoxes struct{}

func (taskBoxes) Trigger() []byte { return []byte{'['} }

func (taskBoxes) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	line, _ := block.PeekLine()
	if len(line) < 3 || line[2] != ']' || len(line) > 3 && !util.IsSpace(line[3]) {
		return nil
	}
	box := &taskBox{}
	switch line[1] {
	case 'x', 'X':
		box.done = true
	case ' ':
	default:
		return nil
	}
	block.Advance(3)
	return box
}

type taskBox struct {
	ast.BaseInline
	done bool
}

var kindTaskBox = ast.NewNodeKind("TaskBox")

func (*taskBox) Kind() ast.NodeKind { return kindTaskBox }

func (b *taskBox) Dump(source []byte, level int) { ast.DumpHelper(b, source, level, nil, nil) }
