// Package secrets removes secrets from texts before they are shown or stored: from complete texts (Set.String), from
// growing texts (Stream), and from all texts inside a value (Clean). It also finds secrets in the files of a project.
//
// The package does not protect against an agent that wants to leak a secret. For example, it does not recognize a
// secret that is written backwards.
package secrets

import (
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// Removed is the text that replaces a secret.
const Removed = "[secret removed]"

// minSecret is the minimum length of a secret in bytes. If a shorter secret such as "a" were removed, texts would be
// unreadable.
const minSecret = 6

// tokenShape is the form of a kind of token: a prefix and a fixed number of letters, digits and underscores.
type tokenShape struct {
	begin string
	rest  int
}

// tokenShapes returns the forms of GitHub's tokens and of ductor's own tokens for MCP clients. Everything with such a
// form is removed. The lengths are fixed, so that a Stream knows where a token ends.
func tokenShapes() []tokenShape {
	return []tokenShape{{"ghp_", 36}, {"gho_", 36}, {"ghu_", 36}, {"ghs_", 36}, {"ghr_", 36}, {"github_pat_", 82},
		{"grant_ductor_", 52}}
}

// tokenBegin is the first byte of all forms of tokens.
const tokenBegin = 'g'

// minToken and maxToken are the lengths of the shortest and of the longest token.
const (
	minToken = len("ghp_") + 36
	maxToken = len("github_pat_") + 82
)

// matchToken compares the beginning of the text with the forms of tokens. It returns the number of bytes that match. If
// the text ends within a token, matchToken returns whole = false.
func matchToken(text string) (n int, whole bool) {
	if text[0] != tokenBegin {
		return 0, false
	}
	for _, s := range tokenShapes() {
		begun := min(len(text), len(s.begin))
		if text[:begun] != s.begin[:begun] {
			continue
		}
		for n = begun; n < len(text) && n < len(s.begin)+s.rest && isTokenByte(text[n]); {
			n++
		}
		switch {
		case n == len(s.begin)+s.rest:
			return n, true
		case n == len(text):
			return n, false
		}
	}
	return 0, false
}

func isTokenByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Set is a set of known secrets. It also removes everything that has the form of a token of GitHub or ductor. A nil Set
// removes nothing. A Set is immutable and safe for concurrent use.
type Set struct {
	words    []string // sorted by length, longest first
	sorted   []string
	prefixOf []int    // for each element of `sorted`: index of its longest prefix among the other elements, or -1
	firstAt  [257]int // index of the first element of `sorted` that begins with this byte
	longest  int
}

// NewSet returns a Set of words. The Set also contains the words as they appear in URLs and JSON. NewSet ignores words
// shorter than minSecret.
func NewSet(words ...string) *Set { return (*Set)(nil).With(words...) }

func (s *Set) With(words ...string) *Set {
	var all []string
	has := map[string]bool{}
	if s != nil {
		all = slices.Clone(s.words)
	}
	for _, w := range all {
		has[w] = true
	}
	for _, w := range words {
		for _, form := range []string{w, url.QueryEscape(w), url.PathEscape(w), inJSON(w)} {
			if len(form) >= minSecret && !has[form] {
				has[form] = true
				all = append(all, form)
			}
		}
	}
	if len(all) == 0 || s != nil && len(all) == len(s.words) {
		return s
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	next := &Set{words: all, sorted: slices.Sorted(slices.Values(all)), prefixOf: make([]int, len(all)),
		longest: max(len(all[0]), maxToken)}
	for i, w := range next.sorted {
		next.firstAt[int(w[0])+1] = i + 1
		shorter := i - 1
		for shorter >= 0 && !strings.HasPrefix(w, next.sorted[shorter]) {
			shorter = next.prefixOf[shorter]
		}
		next.prefixOf[i] = shorter
	}
	for c := range 256 {
		next.firstAt[c+1] = max(next.firstAt[c+1], next.firstAt[c])
	}
	return next
}

func inJSON(word string) string {
	quoted, err := json.Marshal(word)
	if err != nil {
		return word
	}
	return string(quoted[1 : len(quoted)-1])
}

// Words returns all secrets of the set in all their forms, the longest first.
func (s *Set) Words() []string {
	if s == nil {
		return nil
	}
	return s.words
}

// String returns the text without secrets. If the text ends within a secret, and contains at least half of this secret,
// String also removes this part.
func (s *Set) String(text string) string {
	if s == nil {
		return text
	}
	from := 0
	var b strings.Builder
	for i := 0; i < len(text); {
		if !s.mayBegin(text[i]) {
			i++
			continue
		}
		n := s.matchAt(text[i:])
		if n == 0 && s.mayBePrefix(text[i:]) && s.isHalf(text[i:]) {
			n = len(text) - i
		}
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[from:i])
		b.WriteString(Removed)
		i += n
		from = i
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// mayBegin reports whether a secret may begin with this byte. Most bytes of a text need no other check.
func (s *Set) mayBegin(c byte) bool { return s.firstAt[c] < s.firstAt[int(c)+1] || c == tokenBegin }

func (s *Set) searchAfter(text string) int {
	from, to := s.firstAt[text[0]], s.firstAt[int(text[0])+1]
	return from + sort.Search(to-from, func(i int) bool { return s.sorted[from+i] > text })
}

// matchAt returns the length of the secret at the beginning of text, or 0 if text does not begin with a secret.
func (s *Set) matchAt(text string) int {
	// sorted[i] starts as the last word that sorts before text or is equal to it. Every word with which text begins is
	// this word or one of its prefixes, which prefixOf lists.
	for i := s.searchAfter(text) - 1; i >= s.firstAt[text[0]]; i = s.prefixOf[i] {
		if strings.HasPrefix(text, s.sorted[i]) {
			return len(s.sorted[i])
		}
	}
	if n, whole := matchToken(text); whole {
		return n
	}
	return 0
}

// mayBePrefix reports whether the whole text may be the beginning of a longer secret.
func (s *Set) mayBePrefix(text string) bool {
	if len(text) >= s.longest {
		return false
	}
	if i := s.searchAfter(text); i < len(s.sorted) && strings.HasPrefix(s.sorted[i], text) {
		return true
	}
	n, whole := matchToken(text)
	return n > 0 && !whole
}

// isHalf reports whether the text is at least the first half of a secret. A smaller part is no sign of a secret,
// because many texts end with the first few letters of a secret by chance.
func (s *Set) isHalf(text string) bool {
	if len(text) < minSecret {
		return false
	}
	for i := s.searchAfter(text); i < len(s.sorted) && strings.HasPrefix(s.sorted[i], text); i++ {
		if 2*len(text) >= len(s.sorted[i]) {
			return true
		}
	}
	n, whole := matchToken(text)
	return !whole && 2*n >= minToken
}
