// Package rendertest checks whether Telegram's sendMessage would accept a formatted text. It does not use package
// render, so the tests of render can use it.
package rendertest

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxEntities = 100
	longestURL  = 1024

	link = "text_link"
	pre  = "pre"
)

var kinds = []string{"bold", "italic", "strikethrough", "code", pre, link, "blockquote", "expandable_blockquote"}

// Entity is the format of a part of a text. Offset and Length are in UTF-16 code units.
type Entity struct {
	Kind     string
	Offset   int
	Length   int
	URL      string
	Language string
}

func (e Entity) end() int { return e.Offset + e.Length }

// raw reports whether e is code. Code cannot contain other entities, and only quotes can contain code.
func (e Entity) raw() bool { return e.Kind == "code" || e.Kind == pre }

func (e Entity) quote() bool { return e.Kind == "blockquote" || e.Kind == "expandable_blockquote" }

// Check returns an error if Telegram would reject or change a text with entities. It ignores the limits for the length
// and for white space at the start and the end of a message; CheckMessage checks these limits.
func Check(text string, entities []Entity) error {
	if !utf8.ValidString(text) {
		return errors.New("text is not valid UTF-8")
	}
	if !isClean(text) {
		return errors.New("text has characters that Telegram changes")
	}
	units := unitBytes(text)
	for i, e := range entities {
		if err := checkEntity(text, units, e); err != nil {
			return fmt.Errorf("entity %d (%s %d+%d): %w", i, e.Kind, e.Offset, e.Length, err)
		}
	}
	return checkNesting(entities)
}

// CheckMessage returns an error if Telegram would reject or change a message. limit is the maximum length of the
// message in UTF-16 code units.
func CheckMessage(text string, entities []Entity, limit int) error {
	switch n := len(unitBytes(text)) - 1; {
	case isBlank(text):
		return errors.New("text is empty")
	case n > limit:
		return fmt.Errorf("text is %d units long, the limit is %d", n, limit)
	case len(entities) > maxEntities:
		return fmt.Errorf("%d entities, the limit is %d", len(entities), maxEntities)
	case trimmed(text[len(text)-1]):
		return errors.New("text ends with whitespace")
	case trimmed(text[0]) && (len(entities) == 0 || entities[0].Offset > 0):
		return errors.New("text begins with whitespace")
	}
	return Check(text, entities)
}

// unitBytes returns the byte offset for each offset in UTF-16 code units. The byte offset is -1 for the middle of a
// surrogate pair.
func unitBytes(s string) []int {
	out := make([]int, 0, len(s)+1)
	for i, r := range s {
		out = append(out, i)
		if r > 0xffff {
			out = append(out, -1)
		}
	}
	return append(out, len(s))
}

func checkEntity(text string, units []int, e Entity) error {
	switch {
	case !slices.Contains(kinds, e.Kind):
		return errors.New("unknown kind")
	case e.Length <= 0:
		return errors.New("is empty")
	case e.Offset < 0 || e.end() >= len(units):
		return errors.New("is outside of the text")
	case units[e.Offset] < 0 || units[e.end()] < 0:
		return errors.New("cuts a surrogate pair")
	case e.Kind == link && !linkable(e.URL), e.Kind != link && e.URL != "":
		return fmt.Errorf("has a wrong URL %q", e.URL)
	case e.Kind != pre && e.Language != "", strings.ContainsAny(e.Language, " \n"), !isClean(e.Language):
		return fmt.Errorf("has a wrong language %q", e.Language)
	}
	s := text[units[e.Offset]:units[e.end()]]
	if trimmed(s[len(s)-1]) || trimmed(s[0]) && !e.raw() && !e.quote() || strings.Trim(s, " \n") == "" {
		return errors.New("begins or ends with whitespace")
	}
	return nil
}

// checkNesting checks the rules of sendMessage for entities that overlap: One of them must contain the other. Code
// cannot contain entities, and only quotes can contain code. Quotes and links cannot contain entities of the same kind.
// Links cannot contain quotes.
func checkNesting(es []Entity) error {
	var open []Entity
	for i, e := range es {
		if i > 0 && (e.Offset < es[i-1].Offset || e.Offset == es[i-1].Offset && e.Length > es[i-1].Length) {
			return fmt.Errorf("entity %d is not in order", i)
		}
		for len(open) > 0 && open[len(open)-1].end() <= e.Offset {
			open = open[:len(open)-1]
		}
		for _, o := range open {
			switch {
			case e.end() > o.end():
				return fmt.Errorf("entity %d (%s) leaves the %s it is in", i, e.Kind, o.Kind)
			case o.raw(), e.raw() && !o.quote(), e.Kind == o.Kind,
				e.quote() && (o.quote() || o.Kind == link):
				return fmt.Errorf("entity %d (%s) may not be in %s", i, e.Kind, o.Kind)
			}
		}
		open = append(open, e)
	}
	return nil
}

// trimmed reports whether Telegram removes c from the start and the end of a message.
func trimmed(c byte) bool { return c == ' ' || c == '\n' }

// isClean reports whether Telegram keeps all characters of s.
func isClean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e
	})
}

func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && r != 0x180e && (r < 0x200b || r > 0x200f) && (r < 0x2060 || r > 0x206f) &&
			r != 0x2800 && r != 0x3164 && r != 0xfeff && r != 0xfffc
	})
}

var label = regexp.MustCompile(`^[\pL\pN_]([\pL\pN\pM_-]*[\pL\pN\pM_])?$`)

// linkable reports whether Telegram accepts raw as the URL of a link.
func linkable(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || len(raw) > longestURL || !isClean(raw) {
		return false
	}
	if strings.ContainsAny(raw, " \n\\<>\"^`{}|") {
		return false
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	valid := !slices.ContainsFunc(labels, func(l string) bool { return len(l) > 63 || !label.MatchString(l) })
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return valid && len(labels) > 1
	case "tg":
		return valid
	}
	return false
}
