package render

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Stream renders a growing text. At every moment Text equals the Markdown of everything appended. It renders a block
// that can no longer change only once, and splits a block longer than maxBlock, so that the work for a long answer is
// proportional to its length. The zero Stream is empty and ready. Not safe for concurrent use.
type Stream struct {
	// FileMarks replaces each FileMark by the name of its file. An incomplete one at the end is not shown.
	FileMarks bool

	source []byte
	done   []byte // the final rendered blocks
	units  int    // UTF-16 length of done
	ents   []Entity
	marks  []mark
	cached *Text // the last result of Text, until something changes
	most   int   // bytes of a block; 0 is maxBlock
}

// mark is a position in the source where a top-level block starts and everything before it is final.
type mark struct {
	source int // start of the block
	proof  int // end of its first line; the mark is valid as long as the source reaches it
	bytes  int // length of done
	units  int
	ents   int
	rest   *rest // nil for a block of its own
}

// rest describes how a block longer than maxBlock continues.
type rest struct {
	fence string // the line that opened it; empty unless it is a block of code
	seam  string // separator between the text before and the rest
}

// maxBlock is how much of the source is parsed at once, in bytes. Blocks for readers are shorter.
const maxBlock = 32 << 10

// Append appends md. A piece may end anywhere, even inside a character.
func (s *Stream) Append(md string) {
	if md == "" {
		return
	}
	s.source = append(s.source, md...)
	s.cached = nil
}

// Retract removes the last n bytes, but at most everything.
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

// Len returns the number of bytes of the source.
func (s *Stream) Len() int { return len(s.source) }

// Source returns the Markdown that was appended and not retracted.
func (s *Stream) Source() string { return string(s.source) }

// Text renders the source. The caller may keep the result but must not change it.
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

// render renders the source from the last mark on, and moves the mark to the last final block.
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

// advance parses the source after the last mark, and moves the mark to the last final block in it. If it finds a final
// block, it returns true for found. Otherwise r contains the rendering of the text after the mark.
func (s *Stream) advance(after []byte) (r *renderer, found bool) {
	from, fence := s.last().source, s.fence(after)
	raw := append([]byte(fence), after...)
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

// fence returns the line that opened the block of code which continues with after. It returns "" if after does not
// continue a block. Without its code, a block would show its language.
func (s *Stream) fence(after []byte) string {
	if rest := s.last().rest; rest != nil && len(bytes.TrimSpace(after)) > 0 {
		return rest.fence
	}
	return ""
}

// divide ends a block that is longer than all of after, at the end of a line or a word if possible. The result depends
// on nothing else, so it does not matter in which pieces the source arrived.
func (s *Stream) divide(after []byte) {
	next := mark{source: s.last().source, proof: s.last().source + len(after) + 1}
	part, seam := after, ""
	for _, gap := range []string{"\n", " "} {
		if at := bytes.LastIndex(after, []byte(gap)); at > len(after)/2 {
			part, seam = after[:at+1], gap
			break
		}
	}
	if seam == "" {
		part = wholeRunes(after)
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

// wholeRunes returns b without an incomplete character at its end.
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

// openFence returns the line that opened the block of code which is still open at the end of a source, or "".
func openFence(doc ast.Node, source []byte) string {
	code, ok := doc.LastChild().(*ast.FencedCodeBlock)
	if !ok || code.Lines().Len() == 0 || code.Lines().At(code.Lines().Len()-1).Stop < len(source) {
		return ""
	}
	line := source[lineStart(source, code.Pos()):]
	return string(line[:bytes.IndexByte(line, '\n')+1])
}

// finalBlock returns the last top-level block whose start can no longer change: its first line is complete, and the
// line before it is blank. Everything before that block is final. It returns nil if only the first block is left.
func (s *Stream) finalBlock(doc ast.Node, source []byte) ast.Node {
	for n := doc.LastChild(); n != nil && n != doc.FirstChild(); n = n.PreviousSibling() {
		start := lineStart(source, n.Pos())
		if bytes.IndexByte(source[start:], '\n') >= 0 && blankBefore(source, start) {
			return n
		}
	}
	return nil
}

// keep moves rendered blocks to the final ones.
func (s *Stream) keep(r *renderer) {
	t := r.out.blocks()
	if len(t.Text) == 0 {
		return
	}
	gap := s.gap(r)
	s.done = append(append(s.done, gap...), t.Text...)
	s.ents = appendMoved(s.ents, t.Entities, s.units+len(gap))
	s.units += len(gap) + r.out.units
}

// gap returns the separator between the final blocks and r's blocks.
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

// joined returns the final blocks followed by the rendered rest.
func (s *Stream) joined(r *renderer) Text {
	t := r.out.blocks()
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

// rawOffset returns the start in raw of the line that starts at pos in clean, the cleaned form of raw.
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
