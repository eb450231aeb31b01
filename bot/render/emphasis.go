package render

import (
	"bytes"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// emphasis parses *, _ and ~~ as CommonMark does, except for some cases that are common in agents' answers:
//   - In 2*3*4, the * between letters or digits is a multiplication sign or a pointer.
//   - In 2**3**4, a ** between letters or digits can end bold text, but not start it.
//   - Within a web address, these characters are a part of the address.
//   - __init__.py is the name of a file, not bold.
//   - Next to Chinese, Japanese or Korean text, a * needs no space or punctuation around it, because these languages
//     use no spaces.
type emphasis struct{}

func (emphasis) Trigger() []byte { return []byte{'*', '_', '~'} }

func (emphasis) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	if n := dunderName(before, line); n > 0 {
		block.Advance(n)
		return ast.NewTextSegment(segment.WithStop(segment.Start + n))
	}
	var processor parser.DelimiterProcessor = delimiters{}
	if line[0] == '~' {
		processor = strikes{}
	}
	d := parser.ScanDelimiter(line, before, 1, processor)
	if d == nil {
		return nil
	}
	n := d.OriginalLength
	d.Segment = segment.WithStop(segment.Start + n)
	block.Advance(n)
	rest := line[n:]
	if n > maxRun || d.Char == '~' && n != 2 || insideURL(block.Source()[:segment.Start], rest) {
		return ast.NewTextSegment(d.Segment)
	}
	after := ' '
	if len(rest) > 0 {
		after, _ = utf8.DecodeRune(rest)
	}
	switch {
	case d.Char == '*':
		adjustStars(d, before, after)
	case d.Char == '_' && before == '/': // the _ is a part of a path
		d.CanOpen = false
	}
	pc.PushDelimiter(d)
	return d
}

func adjustStars(d *parser.Delimiter, before, after rune) {
	switch {
	case eastAsian(before) || eastAsian(after):
		d.CanOpen = d.CanOpen || !unicode.IsSpace(after)
		d.CanClose = d.CanClose || !unicode.IsSpace(before)
	case wordRune(before) && wordRune(after):
		d.CanOpen = false
		d.CanClose = d.CanClose && d.OriginalLength > 1
	}
}

var dunder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^__[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*__`) })

// dunderName returns the length of a name such as __init__ at the start of the given line, or 0 if there is none. The
// text counts as a name, and not as bold text, only if the characters around it look like a path or a program.
func dunderName(before rune, line []byte) int {
	name := dunder().Find(line)
	if name == nil || wordRune(before) {
		return 0
	}
	rest := line[len(name):]
	inside := before == '.' || before == '/'
	called := len(rest) > 0 && bytes.IndexByte([]byte("([/"), rest[0]) >= 0
	member := len(rest) > 1 && rest[0] == '.' && wordRune(rune(rest[1]))
	if inside || called || member {
		return len(name)
	}
	return 0
}

// insideURL reports whether a position is inside a web address. The parameters before and rest are the text before and
// after the position. The position is inside an address if the word before it contains "://", and the address continues
// after it.
func insideURL(before, rest []byte) bool {
	const longest = 512
	if len(before) > longest {
		before = before[len(before)-longest:]
	}
	word := before[bytes.LastIndexAny(before, " \t\n<>\"`|")+1:]
	if !bytes.Contains(word, []byte("://")) {
		return false
	}
	for _, c := range rest {
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '<' || c == '|':
			return false
		case wordRune(rune(c)) || c >= utf8.RuneSelf || c == '/':
			return true
		case c == ')' || c == ']':
			return false
		}
	}
	return false
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// eastAsian reports whether r is a letter or punctuation mark of a script that uses no spaces.
func eastAsian(r rune) bool {
	scripts := []*unicode.RangeTable{
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	}
	return r >= 0x2e80 && (unicode.In(r, scripts...) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff65)
}

// delimiters tells goldmark which delimiters can be paired.
type delimiters struct{}

func (delimiters) IsDelimiter(b byte) bool { return b == '*' || b == '_' || b == '~' }

func (delimiters) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (delimiters) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// strikes is like delimiters, but for ~~.
type strikes struct{ delimiters }

func (strikes) OnMatch(int) ast.Node { return extast.NewStrikethrough() }
