package telegram

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Units returns the length of text in UTF-16 code units. Telegram measures all lengths in this unit.
func Units(text string) int {
	n := 0
	for _, r := range text {
		n += runeUnits(r)
	}
	return n
}

func runeUnits(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// Slice returns a part of text. offset and length are in UTF-16 code units. If the part reaches outside of the text,
// Slice returns only the existing characters.
func Slice(text string, offset, length int) string {
	units := utf16.Encode([]rune(text))
	from := min(max(offset, 0), len(units))
	to := min(max(offset+length, from), len(units))
	return string(utf16.Decode(units[from:to]))
}

// formatted is a text with entities, as the server stores it.
type formatted struct {
	text     string
	entities []Entity
	rich     *rich // content of a rich message, instead of text and entities; usually nil
}

func (f formatted) equal(g formatted) bool {
	return f.text == g.text && slices.Equal(f.entities, g.entities) && f.rich.equal(g.rich)
}

// formattedParam parses the text and the entities in a call, and normalizes them. The result may be empty.
func (q *request) formattedParam(textName, entitiesName string) (formatted, *Error) {
	text := q.params[textName]
	if len(text) > maxRawText {
		return formatted{}, badRequest("text is too long")
	}
	if mode := strings.ToLower(q.params["parse_mode"]); mode != "" && mode != "none" && text != "" {
		switch mode {
		case "markdown", "markdownv2", "html":
			return formatted{}, badRequest("can't parse entities: this simulator knows no parse modes, send entities")
		}
		return formatted{}, badRequest("unsupported parse_mode")
	}
	entities, err := parseEntities(q.params[entitiesName])
	if err != nil {
		return formatted{}, err
	}
	return normalise(text, entities)
}

// normalise normalizes a text like TDLib's fix_formatted_text. It checks the entities, replaces control characters,
// repairs the nesting, removes entities that cover only white space, and trims both ends.
//
// An entity that reaches outside of the text or splits a surrogate pair is an error. An empty entity is dropped. An
// entity does not include white space at its beginning, so that the text can be trimmed.
func normalise(text string, entities []Entity) (formatted, *Error) {
	if !utf8.ValidString(text) {
		return formatted{}, badRequest("strings must be encoded in UTF-8")
	}
	for _, e := range entities {
		if e.Offset < 0 || e.Offset > 1000000 {
			return formatted{}, badRequest("receive an entity with incorrect offset %d", e.Offset)
		}
		if e.Length < 0 || e.Length > 1000000 {
			return formatted{}, badRequest("receive an entity with incorrect length %d", e.Length)
		}
	}
	entities = fixNesting(slices.DeleteFunc(entities, isEmpty))
	units, entities, err := clean(text, entities)
	if err != nil {
		return formatted{}, err
	}
	entities = fixNesting(trimEntities(units, entities))
	units, entities = trimText(units, entities)
	if len(entities) > MaxEntities {
		entities = entities[:MaxEntities]
	}
	return formatted{text: string(utf16.Decode(units)), entities: entities}, nil
}

func isEmpty(e Entity) bool { return e.Length <= 0 }

func isSpace(unit uint16) bool { return unit == ' ' || unit == '\n' }

// clean replaces or removes characters that Telegram does not store, and moves the entities accordingly.
func clean(text string, entities []Entity) ([]uint16, []Entity, *Error) {
	var out []uint16
	moved := make([]int, 0, len(text)+1)
	bytesAt := make([]int, 0, len(text)+1)
	for at, r := range text {
		moved, bytesAt = append(moved, len(out)), append(bytesAt, at)
		if r >= 0x10000 {
			moved, bytesAt = append(moved, -1), append(bytesAt, at+utf8.RuneLen(r))
		}
		switch {
		case removed(r):
		case r < ' ' && r != '\n':
			out = append(out, ' ')
		default:
			out = utf16.AppendRune(out, r)
		}
	}
	moved = append(moved, len(out))
	kept := entities[:0:0]
	for _, e := range entities {
		if err := checkBounds(e, moved, bytesAt); err != nil {
			return nil, nil, err
		}
		from, to := moved[e.Offset], moved[e.end()]
		e.Offset, e.Length = from, to-from
		if e.Length > 0 {
			kept = append(kept, e)
		}
	}
	return out, kept, nil
}

func checkBounds(e Entity, moved, bytesAt []int) *Error {
	last := len(moved) - 1
	switch {
	case e.Offset > last:
		return badRequest("entity begins after the end of the text at UTF-16 offset %d", e.Offset)
	case moved[e.Offset] < 0:
		return badRequest("entity begins in a middle of a UTF-16 symbol at byte offset %d", bytesAt[e.Offset])
	case e.end() > last:
		return badRequest("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d",
			e.Offset, e.end())
	case moved[e.end()] < 0:
		return badRequest("entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte offset %d",
			e.Offset, bytesAt[e.end()])
	}
	return nil
}

// removed reports whether Telegram removes a character. It removes carriage returns, separators of lines and
// paragraphs, controls of the text direction, and combining lines that would break the layout of a chat.
func removed(r rune) bool {
	return r == '\r' || (r >= 0x2028 && r <= 0x202e) || r == 0x333 || r == 0x33f || r == 0x30a
}

func trimEntities(units []uint16, entities []Entity) []Entity {
	kept := entities[:0]
	for _, e := range entities {
		for e.Length > 0 && isSpace(units[e.Offset]) {
			e.Offset++
			e.Length--
		}
		if e.Length > 0 {
			kept = append(kept, e)
		}
	}
	return kept
}

func trimText(units []uint16, entities []Entity) ([]uint16, []Entity) {
	end := len(units)
	for end > 0 && isSpace(units[end-1]) {
		end--
	}
	begin := 0
	for begin < end && isSpace(units[begin]) {
		begin++
	}
	for i := range entities {
		entities[i].Length = min(entities[i].end(), end) - entities[i].Offset
		entities[i].Offset -= begin
	}
	sortEntities(entities)
	return units[begin:end], entities
}
