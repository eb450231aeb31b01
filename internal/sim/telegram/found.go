package telegram

import (
	"cmp"
	"regexp"
	"slices"
)

// finder finds one kind of entity in what people write; group 1 of the pattern is the entity.
type finder struct {
	kind    string
	pattern *regexp.Regexp
}

func finders() []finder {
	return []finder{
		{"bot_command", regexp.MustCompile(`(?:^|[\s(])(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)(?:$|[^A-Za-z0-9_/@])`)},
		{"mention", regexp.MustCompile(`(?:^|[^A-Za-z0-9_@/])(@[A-Za-z0-9_]{3,32})`)},
		{"url", regexp.MustCompile(`(?:^|\s)(https?://[^\s<>"]+[^\s<>".,!?;:)])`)},
	}
}

// findEntities finds what Telegram marks by itself: commands, mentions and links. It is simpler than the original,
// which knows hundreds of top-level domains, and enough for what bots look at.
func findEntities(text string) []Entity {
	var list []Entity
	for _, f := range finders() {
		for at := 0; at <= len(text); {
			hit := f.pattern.FindStringSubmatchIndex(text[at:])
			if hit == nil {
				break
			}
			from, to := at+hit[2], at+hit[3]
			list = append(list, Entity{Type: f.kind, Offset: Units(text[:from]), Length: Units(text[from:to])})
			at = to
		}
	}
	slices.SortFunc(list, func(a, b Entity) int { return cmp.Compare(a.Offset, b.Offset) })
	return dropTouching(list)
}
