package updates

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"ductor/bot/render"
)

// addressed reports whether a message in a group is meant for the bot. This is the case if the message mentions the
// bot, or replies to a message of the bot.
func addressed(m *wireMessage, me Identity) bool {
	if r := m.ReplyTo; r != nil && me.wrote(r) && !isTopicStart(m, r) {
		return true
	}
	text, entities := m.textAndEntities()
	return len(mentions(text, entities, me)) > 0
}

// span is a range of a text, in UTF-16 units.
type span struct{ from, to int }

// mentions returns the positions at which a text mentions the bot. It relies on the entities from Telegram, because
// Telegram does not treat the e-mail address me@ductor_bot.example as a mention of @ductor_bot.
func mentions(text string, entities []wireEntity, me Identity) []span {
	if len(entities) == 0 {
		return nil
	}
	units := utf16.Encode([]rune(text))
	var found []span
	for _, e := range entities {
		s := span{e.Offset, e.Offset + e.Length}
		if s.from < 0 || s.to > len(units) || s.from >= s.to {
			continue
		}
		switch e.Type {
		case "mention":
			if me.is(strings.TrimPrefix(string(utf16.Decode(units[s.from:s.to])), "@")) {
				found = append(found, s)
			}
		case "text_mention":
			if e.User != nil && e.User.ID == me.ID {
				found = append(found, s)
			}
		}
	}
	return found
}

// withoutMention removes the bot's name from the start and the end of a text, and adjusts the entities. Elsewhere the
// name is a part of the sentence and stays.
func withoutMention(text string, entities []wireEntity, me Identity) (string, []wireEntity) {
	found := mentions(text, entities, me)
	if len(found) == 0 {
		return text, entities
	}
	units := utf16.Encode([]rune(text))
	from, to := 0, len(units)
	for _, s := range found {
		switch {
		case blank(units[from:max(s.from, from)]):
			from = max(s.to, from)
		case blank(units[min(s.to, to):to]):
			to = s.from
		}
	}
	rest := string(utf16.Decode(units[from:max(from, to)]))
	stripped := strings.TrimLeftFunc(strings.TrimLeft(rest, " ,:;\n"), unicode.IsSpace)
	from += render.Len(rest) - render.Len(stripped)
	entities = slices.Clone(entities)
	for i := range entities {
		entities[i].Offset -= from
	}
	return strings.TrimRightFunc(stripped, unicode.IsSpace), entities
}

func blank(units []uint16) bool {
	return strings.TrimSpace(string(utf16.Decode(units))) == ""
}
