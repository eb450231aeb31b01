package render

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Stream renders a text that grows. At every moment Text is what Markdown would make of all that was
// appended; blocks that can no longer change are rendered once, and a block that is longer than maxBlock goes on
// in another one, so that the work over a long answer is in proportion to its length. The zero Stream is empty and
// ready. A Stream is for one goroutine.
type Stream struct {
	// FileMarks has the name of a file stand for each FileMark. One that is not there whole, at the end, is not shown.
	FileMarks bool

	source []byte
	done   []byte // the rendered blocks that are final
	units  int    // UTF-16 length of done
	ents   []Entity
	marks  []mark
	cached *Text // what Text returned, while nothing changed
	most   int   // of a block, in bytes; 0 is maxBlock
}

// mark is a place in the source where a top-level block begins, with all before it final.
type mark struct {
	source int // where the block begins
	proof  int // end of its first line: as long as the source is this long, the mark stands
	bytes  int // of done
	units  int
	ents   int
	rest   *rest // nil for a block of its own
}

// rest says how a block goes on that was longer than maxBlock.
type rest struct {
	fence string // the line that opened it; empty for anything but a block of code
	seam  string // what stands between the text before and the rest
}

// maxBlock is how much of the source is parsed at once, in bytes. No block that users read is that long.
const maxBlock = 32 << 10

// Append adds md to the end. A piece may end anywhere, also inside a character.
func (s *Stream) Append(md string) {
	if md == "" {
		return
	}
	s.source = append(s.source, md...)
	s.cached = nil
}

// Retract takes the last n bytes back, at most all there are.
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

// Len is the number of bytes appended and not retracted.
func (s *Stream) Len() int { return len(s.source) }

// Source is the Markdown appended and not retracted.
func (s *Stream) Source() string { return string(s.source) }

// Text renders what there is. The result is the caller's to keep but not to change.
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

// render renders the source from the last mark on, and moves the mark to the last block that stands.
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

// advance parses what follows the last mark, and moves the mark to the last block in it that stands; found is false if there is
// none. r has rendered what follows the mark then.
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

// fence is the line that opened the block of code which goes on with after; empty for none. A block without code would show its
// language.
func (s *Stream) fence(after []byte) string {
	if rest := s.last().rest; rest != nil && len(bytes.TrimSpace(after)) > 0 {
		return rest.fence
	}
	return ""
}

// divide ends a block that is longer than all of after, at the end of a line or a word where there is one. It depends on nothing
// else, so that it does not matter in which pieces the source came.
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

// wholeRunes is b without the character that it ends within.
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

// openFence is the line that opened the block of code which is open at the end of a source; empty for none.
func openFence(doc ast.Node, source []byte) string {
	code, ok := doc.LastChild().(*ast.FencedCodeBlock)
	if !ok || code.Lines().Len() == 0 || code.Lines().At(code.Lines().Len()-1).Stop < len(source) {
		return ""
	}
	line := source[lineStart(source, code.Pos()):]
	return string(line[:bytes.IndexByte(line, '\n')+1])
}

// finalBlock is the last top-level block that surely begins where it does now: its first line is complete,
// and the line before it is blank. All before it is final. nil if there is none behind the first block.
func (s *Stream) finalBlock(doc ast.Node, source []byte) ast.Node {
	for n := doc.LastChild(); n != nil && n != doc.FirstChild(); n = n.PreviousSibling() {
		start := lineStart(source, n.Pos())
		if bytes.IndexByte(source[start:], '\n') >= 0 && blankBefore(source, start) {
			return n
		}
	}
	return nil
}

// keep moves what was rendered to what is final.
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

// gap is what stands between the final blocks and those of r.
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

// joined is the final blocks and what is rendered of the rest.
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

// rawOffset is where in raw the line begins that begins at pos in clean, the clean form of raw.
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
