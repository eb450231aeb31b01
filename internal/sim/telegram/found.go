package telegram

import (
	"cmp"
	"regexp"
	"slices"
	"sync"
)

// Patterns for entities that Telegram finds in texts. Group 1 is the entity.
var (
	commandPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(])(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)(?:$|[^A-Za-z0-9_/@])`)
	})
	mentionPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[^A-Za-z0-9_@/])(@[A-Za-z0-9_]{3,32})`)
	})
	linkPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|\s)(https?://[^\s<>"]+[^\s<>".,!?;:)])`)
	})
)

// findEntities finds commands, mentions and links in a text. It recognizes a few top-level domains, while Telegram
// recognizes hundreds.
func findEntities(text string) []Entity {
	list := findAll(nil, "bot_command", commandPattern(), text)
	list = findAll(list, "mention", mentionPattern(), text)
	list = findAll(list, "url", linkPattern(), text)
	slices.SortFunc(list, func(a, b Entity) int { return cmp.Compare(a.Offset, b.Offset) })
	return dropTouching(list)
}

// findAll adds an entity for each match of a pattern. After an entity, it continues with the character that ended the
// entity, because this character can also begin the next entity.
func findAll(list []Entity, kind string, pattern *regexp.Regexp, text string) []Entity {
	for at := 0; at <= len(text); {
		hit := pattern.FindStringSubmatchIndex(text[at:])
		if hit == nil {
			break
		}
		from, to := at+hit[2], at+hit[3]
		list = append(list, Entity{Type: kind, Offset: Units(text[:from]), Length: Units(text[from:to])})
		at = to
	}
	return list
}
