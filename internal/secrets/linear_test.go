package secrets

import (
	"fmt"
	"strings"
	"testing"

	"ductor/internal/sim/hostile"
)

// hostileSet returns secrets that are slow to search: many with a common prefix, a repetitive one, and a nested one.
func hostileSet() *Set {
	words := []string{"correct-horse-battery-staple", "correct-horse-", strings.Repeat("a", 300) + "b"}
	for i := range 2000 {
		words = append(words, fmt.Sprintf("limit %d", i+100000), fmt.Sprint("$($($(", i))
	}
	return NewSet(words...)
}

// The work is proportional to the length of the text. It does not depend on the number of secrets, even if the text
// arrives in small pieces.
func TestTheWorkOverATextIsLinear(t *testing.T) {
	set := hostileSet()
	hostile.Linear(t, hostile.Printed, func(text string) { clean(set, text) })
}

func BenchmarkHostile(b *testing.B) {
	set := hostileSet()
	hostile.Benchmark(b, hostile.Printed, func(text string) { clean(set, text) })
}

func clean(set *Set, text string) {
	set.String(text)
	Clean(set, struct{ A []string }{[]string{text}})
	InText([]byte(text))
	var s Stream
	for i := 0; i < len(text); i += 64 {
		s.Add(set, text[i:min(i+64, len(text))])
	}
	s.Flush(set)
}

// The work is proportional to the length of a file of variables, even if the file has an unterminated quote.
func TestTheWorkOverVariablesIsLinear(t *testing.T) {
	files := func(size int) map[string]string {
		files := hostile.Printed(size)
		files["endless"] = "A_TOKEN=\"" + strings.Repeat("\n", size)
		files["late end"] = files["endless"] + "\""
		return files
	}
	hostile.Linear(t, files, func(text string) { NewSet(parseVariables(text)...) })
}

// A Set finds the same words as a naive search at each position, longest first.
func FuzzSet(f *testing.F) {
	f.Add("abcdef abcdefgh abcdefghij bcdefg", "xabcdefghi abcdefg ghp_ abcde", 3)
	f.Add("aaaaaa aaaaaaaa aaaaaaab", "aaaaaaaaaaaaab", 1)
	f.Fuzz(func(t *testing.T, secrets, text string, piece int) {
		set := NewSet(strings.Fields(secrets)...)
		if set == nil {
			return
		}
		var want strings.Builder
		for i := 0; i < len(text); {
			n := 0
			for _, w := range set.Words() {
				if strings.HasPrefix(text[i:], w) {
					n = len(w)
					break
				}
			}
			if shape, whole := matchToken(text[i:]); n == 0 && whole {
				n = shape
			}
			if n == 0 && isCutOff(set, text[i:]) {
				n = len(text) - i
			}
			if n == 0 {
				want.WriteByte(text[i])
				n = 1
			} else {
				want.WriteString(Removed)
			}
			i += n
		}
		if got := set.String(text); got != want.String() {
			t.Fatalf("%q of %q: %q, want %q", secrets, text, got, want.String())
		}
		var s Stream
		var grown string
		apply := func(c Change) { grown = grown[:len(grown)-c.Retract] + c.Text }
		for rest := text; rest != ""; {
			n := min(max(piece, 1), len(rest))
			apply(s.Add(set, rest[:n]))
			rest = rest[n:]
		}
		if apply(s.Flush(set)); grown != want.String() {
			t.Fatalf("%q of the stream %q: %q, want %q", secrets, text, grown, want.String())
		}
	})
}

// isCutOff reports whether text ends with at least half of a secret, without the rest.
func isCutOff(set *Set, text string) bool {
	for _, w := range set.Words() {
		if len(text) >= minSecret && strings.HasPrefix(w, text) && 2*len(text) >= len(w) {
			return true
		}
	}
	n, whole := matchToken(text)
	return !whole && 2*n >= minToken
}
