package cli

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Hunks returns a unified diff without the lines before its first hunk, or "" if the diff has no hunk.
func Hunks(diff string) string {
	if strings.HasPrefix(diff, "@@") {
		return diff
	}
	if _, rest, ok := strings.Cut(diff, "\n@@"); ok {
		return "@@" + rest
	}
	return ""
}

// UnifiedDiff returns the change from one text to another in unified format, without the file header. It returns "" if
// the texts are equal.
func UnifiedDiff(before, after string) string {
	diff, err := udiff.ToUnified("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil { // cannot happen: the edits fit the text
		return ""
	}
	return strings.TrimPrefix(diff, "--- \n+++ \n")
}

// AddedText returns the text of a file that a diff creates. It returns false if the diff contains anything but added
// lines.
func AddedText(diff string) (string, bool) {
	var text strings.Builder
	unended := false
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '+':
			text.WriteString(line[1:])
		case '\\':
			unended = true
		case '@':
		default:
			return "", false
		}
	}
	if unended {
		return strings.TrimSuffix(text.String(), "\n"), true
	}
	return text.String(), true
}

// DiffMakes reports whether a diff turns one text into another. It compares only which lines the diff adds and removes,
// not their positions.
func DiffMakes(hunks, before, after string) bool {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[strings.TrimSuffix(line, "\n")]++
	}
	for line := range strings.Lines(after) {
		count[strings.TrimSuffix(line, "\n")]--
	}
	for line := range strings.Lines(hunks) {
		switch text := strings.TrimSuffix(line, "\n"); line[0] {
		case '+':
			count[text[1:]]++
		case '-':
			count[text[1:]]--
		case ' ', '@', '\\', '\n':
		default:
			return false
		}
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
