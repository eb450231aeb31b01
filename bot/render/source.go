package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Source converts a Telegram text with entities back to Markdown. Formatting that Markdown lacks, such as underlining,
// is dropped. Text that looks like Markdown is not escaped, because users often send code without marking it as code.
// Unlike in other functions of this package, entities may overlap and exceed the text.
func Source(t Text) string {
	if len(t.Entities) == 0 {
		return t.Text
	}
	s := source{units: utf16.Encode([]rune(t.Text))}
	from := 0
	for _, e := range s.valid(t.Entities, Kind.quote) {
		if e.Offset < from { // the quote is inside the previous quote
			continue
		}
		s.write(t.Entities, from, e.Offset)
		s.quote(t.Entities, e)
		from = e.End()
	}
	s.write(t.Entities, from, len(s.units))
	return s.String()
}

type source struct {
	strings.Builder
	units []uint16
	open  []Entity // styles that are open at the moment, outermost first
}

// valid returns the entities whose kind is accepted, sorted by offset, outermost first. It limits the entities to the
// text and removes white space at their edges. It omits entities that become empty.
func (s *source) valid(all []Entity, accepts func(Kind) bool) (some []Entity) {
	for _, e := range all {
		from, to := s.place(e.Offset), s.place(e.End())
		for !e.Kind.keepsIndent() && from < to && unicode.IsSpace(rune(s.units[from])) {
			from++
		}
		for !e.Kind.raw() && from < to && unicode.IsSpace(rune(s.units[to-1])) {
			to--
		}
		if e.Offset, e.Length = from, to-from; accepts(e.Kind) && e.Length > 0 {
			some = append(some, e)
		}
	}
	slices.SortStableFunc(some, func(a, b Entity) int { return cmp.Or(a.Offset-b.Offset, b.End()-a.End()) })
	return some
}

// place clamps an offset to the range from 0 to the end of the text. If the offset is inside a surrogate pair, place
// returns the end of the pair.
func (s *source) place(at int) int {
	at = min(max(at, 0), len(s.units))
	if at > 0 && at < len(s.units) &&
		utf16.DecodeRune(rune(s.units[at-1]), rune(s.units[at])) != unicode.ReplacementChar {
		at++
	}
	return at
}

func (s *source) text(from, to int) string { return string(utf16.Decode(s.units[from:to])) }

// quote writes a quote, with "> " before each line. A blank line follows, because the next line would otherwise be a
// part of the quote in Markdown.
func (s *source) quote(all []Entity, e Entity) {
	inner := source{units: s.units}
	inner.write(all, e.Offset, e.End())
	s.ownLine()
	s.WriteString("> " + strings.ReplaceAll(inner.String(), "\n", "\n> "))
	if e.End() < len(s.units) {
		s.WriteString("\n\n"[min(s.breaks(e.End()), 2):])
	}
}

// breaks returns the number of consecutive line breaks from an offset on.
func (s *source) breaks(at int) (n int) {
	for at+n < len(s.units) && s.units[at+n] == '\n' {
		n++
	}
	return n
}

func (s *source) ownLine() {
	if s.Len() > 0 && !strings.HasSuffix(s.String(), "\n") {
		s.WriteString("\n")
	}
}

func (s *source) write(all []Entity, from, to int) {
	styles, raw := s.valid(all, func(k Kind) bool { return k == Link || marks[k] != "" }), s.valid(all, Kind.raw)
	end := 0
	raw = slices.DeleteFunc(raw, func(e Entity) bool { // remove code inside other code
		inside := e.Offset < end
		if !inside {
			end = e.End()
		}
		return inside
	})
	edges := []int{from, to}
	for _, e := range slices.Concat(styles, raw) {
		edges = append(edges, min(max(e.Offset, from), to), min(max(e.End(), from), to))
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := 1; i < len(edges); i++ {
		at, until := edges[i-1], edges[i]
		covers := func(e Entity) bool { return e.Offset <= at && e.End() >= until }
		if code := slices.IndexFunc(raw, covers); code >= 0 {
			s.change(nil)
			if e := raw[code]; at == max(e.Offset, from) {
				s.code(e, at, min(e.End(), to))
			}
			continue
		}
		s.change(slices.DeleteFunc(slices.Clone(styles), func(e Entity) bool { return !covers(e) }))
		text := s.text(at, until)
		if slices.ContainsFunc(s.open, func(e Entity) bool { return e.Kind == Link }) {
			text = labels.Replace(text)
		}
		s.WriteString(text)
	}
	s.change(nil)
}

var marks = map[Kind]string{Bold: "**", Italic: "*", Strikethrough: "~~"}

var (
	labels    = strings.NewReplacer("[", `\[`, "]", `\]`)
	addresses = strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "%0A", " ", "%20")
)

// change closes and opens styles until exactly the styles in want are open.
func (s *source) change(want []Entity) {
	same := 0
	for same < min(len(want), len(s.open)) && want[same] == s.open[same] {
		same++
	}
	for _, e := range slices.Backward(s.open[same:]) {
		s.WriteString(s.mark(e, true))
	}
	for _, e := range want[same:] {
		s.WriteString(s.mark(e, false))
	}
	s.open = want
}

// mark returns the text at the start or end of a style. It returns "" for a link whose text is its address.
func (s *source) mark(e Entity, end bool) string {
	switch url := addresses.Replace(e.URL); {
	case e.Kind != Link:
		return marks[e.Kind]
	case s.text(e.Offset, e.End()) == e.URL:
		return ""
	case !end:
		return "["
	case strings.ContainsAny(url, "()"):
		return "](<" + url + ">)"
	default:
		return "](" + url + ")"
	}
}

// code writes code in backticks. It uses more backticks than the longest sequence of backticks in the code.
func (s *source) code(e Entity, from, end int) {
	text := s.text(from, end)
	ticks := "`"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	if e.Kind == Code {
		if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
			text = " " + text + " "
		}
		s.WriteString(ticks + text + ticks)
		return
	}
	ticks += "```"[:max(3-len(ticks), 0)]
	s.ownLine()
	language := strings.Join(strings.FieldsFunc(e.Language, func(r rune) bool {
		return r == '`' || unicode.IsSpace(r)
	}), "-")
	s.WriteString(ticks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks)
	if end < len(s.units) && s.units[end] != '\n' {
		s.WriteString("\n")
	}
}
