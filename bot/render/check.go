package render

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxEntities is how many entities Telegram keeps in one message; Split stays within it.
const MaxEntities = 100

// Check says what Telegram would not take as it is, or would change, in the text or the entities of t; nil
// if nothing. It does not look at length or edges: those are rules for whole messages, see CheckMessage.
func Check(t Text) error {
	if !utf8.ValidString(t.Text) {
		return errors.New("text is not valid UTF-8")
	}
	if !isClean(t.Text) {
		return errors.New("text has characters that Telegram changes")
	}
	units := unitBytes(t.Text)
	for i, e := range t.Entities {
		if err := checkEntity(t.Text, units, e); err != nil {
			return fmt.Errorf("entity %d (%s %d+%d): %w", i, e.Kind, e.Offset, e.Length, err)
		}
	}
	return checkNesting(t.Entities)
}

// CheckMessage is Check for a text that is to be one message of at most limit UTF-16 units.
func CheckMessage(t Text, limit int) error {
	switch n := Len(t.Text); {
	case IsBlank(t.Text):
		return errors.New("text is empty")
	case n > limit:
		return fmt.Errorf("text is %d units long, the limit is %d", n, limit)
	case len(t.Entities) > MaxEntities:
		return fmt.Errorf("%d entities, the limit is %d", len(t.Entities), MaxEntities)
	case trimmed(t.Text[len(t.Text)-1]):
		return errors.New("text ends with whitespace")
	case trimmed(t.Text[0]) && (len(t.Entities) == 0 || t.Entities[0].Offset > 0):
		return errors.New("text begins with whitespace")
	}
	return Check(t)
}

// unitBytes maps every UTF-16 offset of s to its byte offset, -1 inside a surrogate pair.
func unitBytes(s string) []int {
	out := make([]int, 0, len(s)+1)
	for i, r := range s {
		out = append(out, i)
		if runeUnits(r) == 2 {
			out = append(out, -1)
		}
	}
	return append(out, len(s))
}

func checkEntity(text string, units []int, e Entity) error {
	switch {
	case rank(e.Kind) < 0:
		return errors.New("unknown kind")
	case e.Length <= 0:
		return errors.New("is empty")
	case e.Offset < 0 || e.End() >= len(units):
		return errors.New("is outside of the text")
	case units[e.Offset] < 0 || units[e.End()] < 0:
		return errors.New("cuts a surrogate pair")
	case e.Kind == Link && !linkable(e.URL), e.Kind != Link && e.URL != "":
		return fmt.Errorf("has a wrong URL %q", e.URL)
	case e.Kind != Pre && e.Language != "", strings.ContainsAny(e.Language, " \n"), !isClean(e.Language):
		return fmt.Errorf("has a wrong language %q", e.Language)
	}
	s := text[units[e.Offset]:units[e.End()]]
	if trimmed(s[len(s)-1]) || trimmed(s[0]) && !e.Kind.keepsIndent() || strings.Trim(s, " \n") == "" {
		return errors.New("begins or ends with whitespace")
	}
	return nil
}

// checkNesting holds the rules of sendMessage: entities are inside or outside of each other, code holds
// nothing and is inside quotes at most, quotes and links hold none of their kind, and no link holds a quote.
func checkNesting(es []Entity) error {
	var open []Entity
	for i, e := range es {
		if i > 0 && (e.Offset < es[i-1].Offset || e.Offset == es[i-1].Offset && e.Length > es[i-1].Length) {
			return fmt.Errorf("entity %d is not in order", i)
		}
		for len(open) > 0 && open[len(open)-1].End() <= e.Offset {
			open = open[:len(open)-1]
		}
		for _, o := range open {
			switch {
			case e.End() > o.End():
				return fmt.Errorf("entity %d (%s) leaves the %s it is in", i, e.Kind, o.Kind)
			case o.Kind.raw(), e.Kind.raw() && !o.Kind.quote(), e.Kind == o.Kind,
				e.Kind.quote() && (o.Kind.quote() || o.Kind == Link):
				return fmt.Errorf("entity %d (%s) may not be in %s", i, e.Kind, o.Kind)
			}
		}
		open = append(open, e)
	}
	return nil
}
