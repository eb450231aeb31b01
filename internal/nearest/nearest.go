// Package nearest finds the name that a mistyped word probably means.
package nearest

import (
	"slices"
	"strings"
)

// Of returns the candidate that is most similar to the given word. It returns false if no candidate is similar enough.
func Of(word string, candidates []string) (string, bool) {
	word = strings.ToLower(word)
	best, least := "", max(2, len(word)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		d := editDistance(word, c)
		if len(c) >= 3 && strings.HasPrefix(word, c) || len(word) >= 3 && strings.HasPrefix(c, word) {
			d = min(d, 2) // an abbreviation counts as at most two edits
		}
		// If two candidates are equally similar, prefer the candidate with the length of the word, because users often
		// swap letters.
		if d < least || d == least && best != "" && len(c) == len(word) && len(best) != len(word) {
			if d < len(c) {
				best, least = c, d
			}
		}
	}
	return best, best != ""
}

// editDistance returns how many edits turn a into b (Levenshtein distance with transpositions). An edit inserts,
// deletes or replaces a byte, or swaps two neighbouring bytes.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
