package cli

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// OneLine folds all white space of s into single blanks and cuts the result to at most limit bytes.
func OneLine(s string, limit int) string { return Shorten(strings.Join(strings.Fields(s), " "), limit) }

// ShortLine is s as one line of a status or a reason.
func ShortLine(s string) string { return OneLine(s, 300) }

// ContainsAny says whether text contains one of parts.
func ContainsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// NumberIn is the number that the first group of re finds in text; nil if there is none.
func NumberIn(re *regexp.Regexp, text string) *int {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return nil
	}
	return &n
}

// Shorten cuts s to at most limit bytes at a character boundary and marks the cut with an ellipsis.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:max(cut, 0)] + "…"
}
