package render

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Stream renders Markdown that grows. Text returns the rendering of all Markdown appended so far. Blocks that can no
// longer change are rendered only once, and blocks longer than maxBlock are split, so that the total time is
// proportional to the length of the answer. The zero Stream is ready for use. A Stream is not safe for concurrent use.
type Stream struct {
	// FileMarks makes Text show the name of the file in place of each FileMark. Text omits a FileMark whose end is
	// still missing.
	FileMarks bool

	source []byte
	done   []byte // rendered text of the blocks that can no longer change
	units  int    // length of done in UTF-16 units
	ents   []Entity
	marks  []mark
	cached *Text // cached return value of Text; nil after a change
	most   int   // maximum length of a block in bytes; 0 means maxBlock
}

// mark is the start of a top-level block in the source. The blocks before it can no longer change.
type mark struct {
	source int
	proof  int // usually the end of the block's first line; Retract drops the mark if the source then ends before proof
	bytes  int
	units  int
	ents   int
	rest   *rest // set if the block is the second part of a longer block; otherwise nil
}

// rest describes the second part of a block that was longer than maxBlock.
type rest struct {
	fence string // first line of the block if it is fenced code, such as "```go"; otherwise empty
	seam  string // white space between the first and the second part of the block
}

// maxBlock is the maximum number of bytes of Markdown that are parsed at once. Blocks in normal answers are shorter.
const maxBlock = 32 << 10

// Append appends Markdown. md may end anywhere, even inside a character.
func (s *Stream) Append(md string) {
	if md == "" {
		return
	}
	s.source = append(s.source, md...)
	s.cached = nil
}

// Retract removes the last n bytes of the Markdown.
func (s *Stream) Retract(n int) {
	if n <= 0 {
		return
	}
	s.source = s.source[:max(0, len(s.source)-n)]
	s.cached = nil
	keep := len(s.marks)
	for keep > 0 && s.marks[keep-1].proof > len(s.source) {
		keep--
	}
	s.marks = s.marks[:keep]
	last := s.last()
	s.done, s.units, s.ents = s.done[:last.bytes], last.units, s.ents[:last.ents]
}

// Len returns the length of the Markdown in bytes.
func (s *Stream) Len() int { return len(s.source) }

// Source returns the Markdown.
func (s *Stream) Source() string { return string(s.source) }

// Text returns the rendering of the Markdown. The caller must not change it.
func (s *Stream) Text() Text {
	if s.cached == nil {
		t := s.render()
		s.cached = &t
	}
	return *s.cached
}

func (s *Stream) last() mark {
	if len(s.marks) == 0 {
		return mark{}
	}
	return s.marks[len(s.marks)-1]
}

// render renders the source after the last mark. If blocks after the last mark can no longer change, it adds marks
// after these blocks.
func (s *Stream) render() Text {
	most := cmp.Or(s.most, maxBlock)
	for len(s.source)-s.last().source > most {
		from := s.last().source
		if _, found := s.advance(s.source[from : from+most]); !found {
			s.divide(s.source[from : from+most])
		}
	}
	r, _ := s.advance(s.source[s.last().source:])
	return s.joined(r)
}

// advance parses tail, which is the source after the last mark. If blocks in tail can no longer change, advance adds a
// mark after them and returns true. The returned renderer then contains only the text after the new mark. If advance
// returns false, the renderer contains all of tail.
func (s *Stream) advance(tail []byte) (r *renderer, found bool) {
	from, fence := s.last().source, s.fence(tail)
	raw := append([]byte(fence), tail...)
	clean := []byte(cleanSource(string(raw)))
	doc := parse(clean, s.FileMarks)
	final := s.finalBlock(doc, clean)
	r = &renderer{source: clean, out: &builder{}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n == final {
			s.keep(r)
			start := lineStart(clean, n.Pos())
			line := start + bytes.IndexByte(clean[start:], '\n') + 1
			at := from - len(fence)
			s.marks = append(s.marks, mark{
				source: at + rawOffset(raw, clean, start), proof: max(at+rawOffset(raw, clean, line), s.last().proof),
				bytes: len(s.done), units: s.units, ents: len(s.ents),
			})
			r.out = &builder{}
		}
		r.topLevel(n)
	}
	return r, final != nil
}

// fence returns the first line of the code block that continues in tail, or "" if tail does not continue a code block.
// Without this line, the parser would not recognize tail as code.
func (s *Stream) fence(tail []byte) string {
	if rest := s.last().rest; rest != nil && len(bytes.TrimSpace(tail)) > 0 {
		return rest.fence
	}
	return ""
}

// divide splits a block that is longer than maxBlock, if possible at the end of a line or word. head is the beginning
// of the block. The position of the split must depend only on the source, not on the pieces in which Append received
// the source.
func (s *Stream) divide(head []byte) {
	next := mark{source: s.last().source, proof: s.last().source + len(head) + 1}
	part, seam := head, ""
	for _, gap := range []string{"\n", " "} {
		if at := bytes.LastIndex(head, []byte(gap)); at > len(head)/2 {
			part, seam = head[:at+1], gap
			break
		}
	}
	if seam == "" {
		part = wholeRunes(head)
	}
	clean := []byte(cleanSource(s.fence(part) + string(part)))
	doc := parse(clean, s.FileMarks)
	r := &renderer{source: clean, out: &builder{}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		r.topLevel(n)
	}
	s.keep(r)
	next.source, next.rest = next.source+len(part), &rest{openFence(doc, clean), seam}
	next.bytes, next.units, next.ents = len(s.done), s.units, len(s.ents)
	s.marks = append(s.marks, next)
}

// wholeRunes removes an incomplete character from the end of b.
func wholeRunes(b []byte) []byte {
	for n := len(b) - 1; n > len(b)-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(b[n]) {
			if !utf8.FullRune(b[n:]) {
				return b[:n]
			}
			break
		}
	}
	return b
}

// openFence returns the first line of an unclosed code block at the end of the source. It returns "" if there is no
// such code block.
func openFence(doc ast.Node, source []byte) string {
	code, ok := doc.LastChild().(*ast.FencedCodeBlock)
	if !ok || code.Lines().Len() == 0 || code.Lines().At(code.Lines().Len()-1).Stop < len(source) {
		return ""
	}
	line := source[lineStart(source, code.Pos()):]
	return string(line[:bytes.IndexByte(line, '\n')+1])
}

// finalBlock returns the last top-level block, except the first block of doc, that follows a blank line and whose first
// line is complete. Markdown that is appended later can change neither the start of this block nor the blocks before
// it. finalBlock returns nil if there is no such block.
func (s *Stream) finalBlock(doc ast.Node, source []byte) ast.Node {
	for n := doc.LastChild(); n != nil && n != doc.FirstChild(); n = n.PreviousSibling() {
		start := lineStart(source, n.Pos())
		if bytes.IndexByte(source[start:], '\n') >= 0 && blankBefore(source, start) {
			return n
		}
	}
	return nil
}

// keep appends the blocks of r to the stored blocks, which can no longer change.
func (s *Stream) keep(r *renderer) {
	t := r.out.untrimmed()
	if len(t.Text) == 0 {
		return
	}
	gap := s.gap(r)
	s.done = append(append(s.done, gap...), t.Text...)
	s.ents = appendMoved(s.ents, t.Entities, s.units+len(gap))
	s.units += len(gap) + r.out.units
}

// gap returns the white space between the stored blocks and the blocks of r.
func (s *Stream) gap(r *renderer) string {
	switch {
	case len(s.done) == 0:
		return ""
	case s.last().rest != nil:
		return s.last().rest.seam
	case r.apart:
		return "\n\n"
	}
	return "\n"
}

// joined returns the stored blocks followed by the blocks of r.
func (s *Stream) joined(r *renderer) Text {
	t := r.out.untrimmed()
	gap := s.gap(r)
	text := strings.TrimRight(string(s.done)+gap+t.Text, " \n")
	es := make([]Entity, 0, len(s.ents)+len(t.Entities))
	es = append(es, s.ents...)
	return Text{Text: text, Entities: appendMoved(es, t.Entities, s.units+len(gap))}
}

func appendMoved(es, more []Entity, by int) []Entity {
	for _, e := range more {
		e.Offset += by
		es = append(es, e)
	}
	return es
}

// rawOffset converts the offset pos of a line from the text clean to the text raw. clean must be the result of
// cleanSource(raw). pos must be the start of a line.
func rawOffset(raw, clean []byte, pos int) int {
	if len(raw) == len(clean) && bytes.Equal(raw, clean) {
		return pos
	}
	lines := bytes.Count(clean[:pos], []byte{'\n'})
	at := 0
	for ; lines > 0; lines-- {
		at += bytes.IndexByte(raw[at:], '\n') + 1
	}
	return at
}
