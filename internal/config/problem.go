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

// Problem is one thing that is wrong.
type Problem struct {
	Line, Column int    // from 1; 0 when the file does not mention the key
	Key          string // dotted, such as "telegram.token"; empty when the file as a whole is wrong
	Text         string // what is wrong and what would be right, in one line
}

// Invalid is every problem of a configuration, in the order of the file. Its text has one line for each.
type Invalid struct {
	Path     string // as it was given to Load; empty from Validate
	Problems []Problem
}

// Error gives one line per problem: file, line, column, key, and what is wrong.
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

// problems gathers what is wrong.
type problems []Problem

func (p *problems) add(key, format string, args ...any) {
	if q := (Problem{Key: key, Text: fmt.Sprintf(format, args...)}); !slices.Contains(*p, q) {
		*p = append(*p, q)
	}
}

func (p *problems) has(key string) bool {
	return slices.ContainsFunc(*p, func(q Problem) bool { return q.Key == key })
}

// news leaves out of more what follows from p: a value that could not be read is not reported once more as
// missing.
func (p *problems) news(more problems) problems {
	return slices.DeleteFunc(more, func(q Problem) bool {
		return p.has(q.Key) || q.Key == keyToken && p.has(keyTokenFile)
	})
}

// asError gives the problems in the order of the file; those that the file does not mention come first.
func (p problems) asError(path string) error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
	return &Invalid{Path: path, Problems: p}
}

// oneLine keeps control characters that a file may hold away from the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// hideTokens keeps a token that was written in a wrong place out of an error.
func hideTokens(text string) string {
	return regexp.MustCompile(`[0-9]{5,}:[A-Za-z0-9_-]{10,}`).ReplaceAllString(text, secrets.Removed)
}

// oneOf says what a word may be, with the one that was probably meant.
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
