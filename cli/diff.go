package cli

import "strings"

// Hunks returns a unified diff without the lines before its first hunk, or "" if it has no hunk.
func Hunks(diff string) string {
	if strings.HasPrefix(diff, "@@") {
		return diff
	}
	if _, rest, ok := strings.Cut(diff, "\n@@"); ok {
		return "@@" + rest
	}
	return ""
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
