// Package secrets takes texts that must be neither shown nor stored out of others: of whole ones, of ones that grow (Stream),
// and of all texts of a value (Clean). It also finds such texts in the files of a project.
//
// The package is NOT a guard against an agent that means to give a secret away: one that is written backwards passes.
package secrets

import (
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// Removed stands where a secret stood.
const Removed = "[secret removed]"

// shortest is how long a secret is at least, in bytes: taking out "a" would leave nothing to read.
const shortest = 6

// shape is what tokens of a kind look like: a beginning, and so many letters, digits and underscores behind it.
type shape struct {
	begin string
	rest  int
}

// shapes are those of GitHub's tokens, which are secrets wherever they come from. Each has one length, so that the end of a text that
// grows is decided.
func shapes() []shape {
	return []shape{{"ghp_", 36}, {"gho_", 36}, {"ghu_", 36}, {"ghs_", 36}, {"ghr_", 36}, {"github_pat_", 82}}
}

// longestShape is the length of the longest token of shapes.
const longestShape = len("github_pat_") + 82

// shaped is how much of the beginning of text a token may have, and whether that is a whole one.
func shaped(text string) (n int, whole bool) {
	if text[0] != 'g' {
		return 0, false
	}
	for _, s := range shapes() {
		begun := min(len(text), len(s.begin))
		if text[:begun] != s.begin[:begun] {
			continue
		}
		for n = begun; n < len(text) && n < len(s.begin)+s.rest && ofToken(text[n]); {
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

func ofToken(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Set is secrets that are known, and all that looks like a token of GitHub. It is immutable and safe for concurrent use; a nil Set is empty.
type Set struct {
	words   []string // the longest first
	sorted  []string
	within  []int    // of each in sorted, where the longest other one is that it begins with; -1 for none
	from    [257]int // where in sorted those with a first byte begin
	longest int
}

// NewSet makes a Set of words, in each form that a URL or JSON gives them. Those that are too short are passed over.
func NewSet(words ...string) *Set { return (*Set)(nil).With(words...) }

// With is the Set with more words.
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
			if len(form) >= shortest && !has[form] {
				has[form] = true
				all = append(all, form)
			}
		}
	}
	if len(all) == 0 || s != nil && len(all) == len(s.words) {
		return s
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	next := &Set{words: all, sorted: slices.Sorted(slices.Values(all)), within: make([]int, len(all)), longest: max(len(all[0]), longestShape)}
	for i, w := range next.sorted {
		next.from[int(w[0])+1] = i + 1
		shorter := i - 1
		for shorter >= 0 && !strings.HasPrefix(w, next.sorted[shorter]) {
			shorter = next.within[shorter]
		}
		next.within[i] = shorter
	}
	for c := range 256 {
		next.from[c+1] = max(next.from[c+1], next.from[c])
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

// Words lists the secrets in all their forms, the longest first.
func (s *Set) Words() []string {
	if s == nil {
		return nil
	}
	return s.words
}

// String is text without secrets.
func (s *Set) String(text string) string {
	if s == nil {
		return text
	}
	from := 0
	var b strings.Builder
	for i := 0; i < len(text); {
		n := s.at(text[i:])
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

// behind returns where in sorted the first word behind text is.
func (s *Set) behind(text string) int {
	from, to := s.from[text[0]], s.from[int(text[0])+1]
	return from + sort.Search(to-from, func(i int) bool { return s.sorted[from+i] > text })
}

// at is how long the secret is that text begins with; 0 for none.
func (s *Set) at(text string) int {
	// What text begins with, the last word up to text begins with too.
	for i := s.behind(text) - 1; i >= s.from[text[0]]; i = s.within[i] {
		if strings.HasPrefix(text, s.sorted[i]) {
			return len(s.sorted[i])
		}
	}
	if n, whole := shaped(text); whole {
		return n
	}
	return 0
}

// mayBecome says whether text may be the beginning of a secret.
func (s *Set) mayBecome(text string) bool {
	if len(text) >= s.longest {
		return false
	}
	if i := s.behind(text); i < len(s.sorted) && strings.HasPrefix(s.sorted[i], text) {
		return true
	}
	n, whole := shaped(text)
	return n > 0 && !whole
}
