package render

import (
	"bytes"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// FileMark is text in an answer with which an agent sends a file to the chat: [[file: out/report.pdf]], or with a
// caption [[file: out/plan.png | The plan]]. A FileMark in code has no effect.
type FileMark struct {
	Path    string
	Caption string
}

// FileMarks returns the file marks in a Markdown text, in order.
func FileMarks(src string) (all []FileMark) {
	_ = ast.Walk(parse([]byte(cleanSource(src)), true), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if m, ok := n.(*fileMark); ok && entering && m.Path != "" {
			all = append(all, m.FileMark)
		}
		return ast.WalkContinue, nil
	}) // the error is always nil
	return all
}

const (
	markBegin = "[[file:"
	markEnd   = "]]"
	maxMark   = 8 << 10 // maximum length in bytes
)

// marksWanted is a key in the parser's context. It is set if the parser must recognize file marks.
var marksWanted = parser.NewContextKey()

type fileMarks struct{}

func (fileMarks) Trigger() []byte { return []byte{'['} }

func (fileMarks) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.Get(marksWanted) == nil {
		return nil
	}
	line, segment := block.PeekLine()
	whole := len(line) <= maxMark
	line = line[:min(len(line), maxMark)]
	begun := min(len(line), len(markBegin))
	if begun < 2 || string(line[:begun]) != markBegin[:begun] {
		return nil
	}
	m := &fileMark{}
	end := bytes.Index(line, []byte(markEnd))
	switch {
	case end >= 0:
		at, caption, _ := strings.Cut(string(line[len(markBegin):end]), "|")
		m.Path, m.Caption = strings.TrimSpace(at), strings.TrimSpace(caption)
		end += len(markEnd)
	case whole && len(bytes.TrimLeft(block.Source()[segment.Stop:], " \t")) == 0:
		// The source ends before the end of the mark. The missing part may be appended to the source later.
		end = len(line)
	}
	if end < 0 || m.Path == "" && end != len(line) {
		return nil
	}
	block.Advance(end)
	return m
}

// fileMark is a file mark in the syntax tree. The path is empty if the end of the mark is missing.
type fileMark struct {
	ast.BaseInline
	FileMark
}

var kindFileMark = ast.NewNodeKind("FileMark")

func (*fileMark) Kind() ast.NodeKind { return kindFileMark }

func (m *fileMark) Dump(source []byte, level int) { ast.DumpHelper(m, source, level, nil, nil) }

// shown returns the text in place of the mark: the name of the file, or "" if the mark is incomplete.
func (m *fileMark) shown() string {
	if m.Path == "" {
		return ""
	}
	return "📎 " + path.Base(m.Path)
}
