package render

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Stream renders a growing text. At any time, Text returns the Markdown of everything appended so far. Stream renders
// a block that can no longer change only once, and splits blocks longer than maxBlock. So the work for a long answer
// is proportional to its length. The zero Stream is ready for use. Not safe for concurrent use.
type Stream struct {
	// FileMarks makes Text show the name of the file in place of each FileMark, and hide an incomplete mark at the
	// end.
	FileMarks bool

	source []byte
	done   []byte // the rendered blocks that are final
	units  int    // UTF-16 length of done
	ents   []Entity
	marks  []mark
	cached *Text // the last result of Text; nil after a change
	most   int   // maximum bytes of a block; 0: maxBlock
}

// mark is the start of a top-level block in the source. Everything before it is final.
type mark struct {
	source int // start of the block
	proof  int // end of the block's first line; the mark is valid if the source is at least that long
	bytes  int // length of done at the mark
	units  int
	ents   int
	rest   *rest // set if the block is the rest of a longer block
}

// rest describes the rest of a block longer than maxBlock.
type rest struct {
	fence string // first line of the block if it is code; otherwise empty
	seam  string // separator between the rendered text and the rest
}

// maxBlock limits how much of the source is parsed at once, in bytes. Blocks in normal answers are shorter.
const maxBlock = 32 << 10

// Append appends md. A piece of md may end anywhere, even inside a character.
func (s *Stream) Append(md string) {
	if md == "" {
		return
	}
	s.source = append(s.source, md...)
	s.cached = nil
}

// Retract removes the last n bytes of the source.
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

// Source returns the current Markdown.
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

// render renders the source after the last mark. It moves the mark when blocks become final.
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

// advance parses the source after the last mark. If it finds final blocks, it moves the mark to their end and returns
// true. Otherwise r contains the rendering of the text after the mark.
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

// fence returns the first line of the code block that continues with after, or "" if after continues none. Without
// this line, the parser would not recognize the code.
func (s *Stream) fence(after []byte) string {
	if rest := s.last().rest; rest != nil && len(bytes.TrimSpace(after)) > 0 {
		return rest.fence
	}
	return ""
}

// divide ends a block that is too long for one parse. after is the beginning of the block. divide ends it at the end
// of a line or word if possible. The result depends only on the source, not on how Append received it.
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

// wholeRunes returns b without an incomplete character at the end.
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

// openFence returns the first line of the code block that is open at the end of a source, or "".
func openFence(doc ast.Node, source []byte) string {
	code, ok := doc.LastChild().(*ast.FencedCodeBlock)
	if !ok || code.Lines().Len() == 0 || code.Lines().At(code.Lines().Len()-1).Stop < len(source) {
		return ""
	}
	line := source[lineStart(source, code.Pos()):]
	return string(line[:bytes.IndexByte(line, '\n')+1])
}

// finalBlock returns the last top-level block whose start can no longer change, because its first line is complete
// and the line before it is blank. Everything before that block is final. finalBlock returns nil if that is only the
// first block.
func (s *Stream) finalBlock(doc ast.Node, source []byte) ast.Node {
	for n := doc.LastChild(); n != nil && n != doc.FirstChild(); n = n.PreviousSibling() {
		start := lineStart(source, n.Pos())
		if bytes.IndexByte(source[start:], '\n') >= 0 && blankBefore(source, start) {
			return n
		}
	}
	return nil
}

// keep appends the blocks of r to the final blocks.
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

// joined returns the final blocks followed by the blocks of r.
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

// rawOffset returns the offset in raw of the line that starts at pos in clean. clean is cleanSource of raw.
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
