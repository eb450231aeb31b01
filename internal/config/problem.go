package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ductor/internal/nearest"
	"ductor/internal/secrets"
)

// Problem is a mistake in a configuration.
type Problem struct {
	Line, Column int    // position in the file, from 1; 0 if the file does not contain the key
	Key          string // dotted key, such as "telegram.token"; empty for the whole file
	Text         string // describes the mistake and its fix, in one line

	meant string // the known key that the user probably meant if Key is unknown, or ""
}

// Invalid is the error for a configuration with mistakes. The problems are in the order of the file.
type Invalid struct {
	Path     string
	Problems []Problem

	decoded *Config // nil if the file is not TOML; settings with mistakes have undefined values
}

// Places returns a configuration with valid settings for the places where ductor stores its state and runs its agents.
// Other settings may contain mistakes. Places returns false if the table storage contains a mistake. If the table
// sandbox contains a mistake, the result contains no sandboxes.
func (e *Invalid) Places() (Config, bool) {
	c, ok := e.Parts("storage")
	if ok && e.concerns("sandbox") {
		c.Sandbox = Default().Sandbox
	}
	return c, ok
}

// Parts returns a configuration in which the given tables and keys are valid. All other parts may contain mistakes, and
// must not be used. Parts returns false if one of the given tables and keys contains a mistake.
func (e *Invalid) Parts(keys ...string) (Config, bool) {
	if e.decoded == nil || slices.ContainsFunc(keys, e.concerns) {
		return Config{}, false
	}
	return *e.decoded, true
}

// concerns reports whether there is a mistake at a key, which is a setting or a table. A mistake also counts if it is
// at a setting of the table, or at a table that contains the key.
func (e *Invalid) concerns(key string) bool {
	within := func(k string) bool { return strings.HasPrefix(k+".", key+".") || strings.HasPrefix(key+".", k+".") }
	return slices.ContainsFunc(e.Problems, func(p Problem) bool { return within(p.Key) || within(p.meant) })
}

// Error returns one line per problem, with file, line, column and key.
func (e *Invalid) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		var where string
		switch {
		case e.Path != "" && p.Line > 0:
			where = fmt.Sprintf("%s:%d:%d: ", e.Path, p.Line, p.Column)
		case e.Path != "":
			where = e.Path + ": "
		}
		if p.Key != "" {
			where += p.Key + ": "
		}
		lines = append(lines, hideTokens(oneLine(where+p.Text)))
	}
	return strings.Join(lines, "\n")
}

type problems []Problem

func (p *problems) add(key, format string, args ...any) {
	if q := (Problem{Key: key, Text: fmt.Sprintf(format, args...)}); !slices.Contains(*p, q) {
		*p = append(*p, q)
	}
}

func (p *problems) has(key string) bool {
	return slices.ContainsFunc(*p, func(q Problem) bool { return q.Key == key })
}

// withoutKnown removes a candidate if p already contains a problem with the same key. For example, if a value has the
// wrong kind, no second problem should report the value as missing.
func (p *problems) withoutKnown(candidates problems) problems {
	return slices.DeleteFunc(candidates, func(q Problem) bool {
		return p.has(q.Key) || q.Key == keyToken && p.has(keyTokenFile)
	})
}

// asError returns an *Invalid with the problems, or nil for no problems.
func (p problems) asError(path string) error {
	if len(p) == 0 {
		return nil
	}
	return p.invalid(path)
}

// invalid returns an *Invalid with the problems, sorted by their positions.
func (p problems) invalid(path string) *Invalid {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
	return &Invalid{Path: path, Problems: p}
}

// oneLine replaces control characters with spaces, because they could affect a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// hideTokens removes bot tokens from a text. A user may have written the token in the wrong place.
func hideTokens(text string) string {
	return regexp.MustCompile(`[0-9]{5,}:[A-Za-z0-9_-]{10,}`).ReplaceAllString(text, secrets.Removed)
}

// oneOf describes the problem that a word is not one of the choices. It suggests the most similar choice.
func oneOf(word string, choices []string) string {
	text := fmt.Sprintf("%q is not one of %s", word, quoted(choices))
	if near, ok := nearest.Of(word, choices); ok {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

func quoted(words []string) string {
	all := make([]string, 0, len(words))
	for _, w := range words {
		all = append(all, fmt.Sprintf("%q", w))
	}
	return strings.Join(all, ", ")
}
