package telegram

import (
	"math"
	"slices"
)

// fixNesting makes a list of entities valid, like the real server. The type family defines the kinds of entities.
// fixNesting removes a continuous entity that overlaps an earlier continuous entity or crosses the edge of a
// blockquote. It merges splittable entities, splits them at the edges of other entities, and removes them from code.
// The result is sorted, so that an outer entity comes before the entities inside it.
func fixNesting(list []Entity) []Entity {
	sortEntities(list)
	var formats, solid, quotes []Entity
	for _, e := range list {
		switch familyOf(e.Type) {
		case splittable:
			formats = append(formats, e)
		case quoting:
			quotes = append(quotes, e)
		default:
			solid = append(solid, e)
		}
	}
	solid = dropTouching(solid)
	quotes = dropTouching(quotes)
	solid = append(dropCrossing(solid, quotes), quotes...)
	sortEntities(solid)
	if len(formats) > 0 {
		solid = append(solid, splitAround(formats, solid)...)
		sortEntities(solid)
	}
	return solid
}

func dropTouching(list []Entity) []Entity {
	end := 0
	return slices.DeleteFunc(list, func(e Entity) bool {
		if e.Offset < end {
			return true
		}
		end = e.end()
		return false
	})
}

func dropCrossing(list, quotes []Entity) []Entity {
	return slices.DeleteFunc(list, func(e Entity) bool {
		return slices.ContainsFunc(quotes, func(q Entity) bool {
			apart := q.end() <= e.Offset || e.end() <= q.Offset
			inside := q.Offset <= e.Offset && e.end() <= q.end()
			return !apart && !inside
		})
	})
}

// span is the range of text that an open format covers. The zero value means that the format is not open.
type span struct{ begin, end int }

// splitter splits splittable entities (formats such as bold) where other entities begin or end.
type splitter struct {
	rest []Entity // formats that the splitter has not handled yet, sorted
	open map[string]*span
	out  []Entity
}

func splitAround(formats, others []Entity) []Entity {
	s := &splitter{rest: formats, open: map[string]*span{}}
	var nested []Entity
	advance := func(offset int) {
		for len(nested) > 0 && offset >= nested[len(nested)-1].end() {
			top := nested[len(nested)-1]
			before := len(s.out)
			s.upTo(top.end())
			if isPre(top.Type) {
				s.out = s.out[:before]
			}
			nested = nested[:len(nested)-1]
		}
		s.upTo(offset)
	}
	for _, e := range others {
		advance(e.Offset)
		nested = append(nested, e)
	}
	advance(math.MaxInt)
	return s.out
}

func (s *splitter) upTo(offset int) {
	for len(s.rest) > 0 && s.rest[0].Offset < offset {
		e := s.rest[0]
		s.rest = s.rest[1:]
		now := s.open[e.Type]
		if now == nil {
			now = &span{}
			s.open[e.Type] = now
		}
		if now.end != 0 && e.Offset <= now.end {
			now.end = max(now.end, e.end())
			continue
		}
		s.flush(e.Offset)
		*now = span{e.Offset, e.end()}
	}
	s.flush(offset)
}

func (s *splitter) flush(offset int) {
	for _, kind := range []string{"bold", "italic", "underline", "strikethrough", "spoiler"} {
		now := s.open[kind]
		if now == nil || now.end == 0 || now.begin >= offset {
			continue
		}
		end := min(now.end, offset)
		s.out = append(s.out, Entity{Type: kind, Offset: now.begin, Length: end - now.begin})
		if now.end <= offset {
			*now = span{}
		} else {
			now.begin = offset
		}
	}
}
