package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// LeadsElsewhere reports whether an argument of the request could be a path that is outside of dir or hidden. The names
// of the arguments do not matter, because each MCP server has its own. Labels do not count; see LabelField.
func (a ApprovalAsked) LeadsElsewhere(dir string) bool {
	labels := map[string]string{}
	for _, f := range a.Fields {
		if f.Weight == LabelField {
			labels[f.Name] = f.Value
		}
	}
	return slices.ContainsFunc(Leaves(a.Input), func(l Leaf) bool {
		if value, is := labels[l.Name]; is && value == l.Value {
			return false
		}
		keys := strings.ReplaceAll(l.Name, "].", "] ") // a key may be a path, too
		return namesElsewhere(dir, keys) || namesElsewhere(dir, l.Value)
	})
}

var webAddress = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\bhttps?://[^\s"'<>]*`) })

// closingTag matches tags such as "</p>", which are no paths.
var closingTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`</[A-Za-z][\w-]*\s*>`) })

// proseWord matches words of prose that start like a hidden file or a home directory: dots, ".NET", ".5" and "~5".
var proseWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\.{3,}|\.NET|[.~]\d[\d.]*%?)[.!?]*$`)
})

// namesElsewhere reports whether a word of a text could be a path that is outside of dir or hidden. Addresses of web
// pages are no paths, unless they contain "..".
func namesElsewhere(dir, text string) bool {
	text = webAddress().ReplaceAllStringFunc(text, func(address string) string {
		if strings.Contains(address, "..") {
			return address
		}
		return " "
	})
	text = withoutSlashes(closingTag().ReplaceAllLiteralString(text, " "))
	return slices.ContainsFunc(ShellWords(text), func(word string) bool {
		return !proseWord().MatchString(word) && wordElsewhere(dir, word)
	})
}

// withoutSlashes removes slashes between two words of prose, as in "Linux / macOS". White space must surround such a
// slash, and both words must start with a letter or a digit.
func withoutSlashes(text string) string {
	isWord := func(word string) bool {
		first, _ := utf8.DecodeRuneInString(word)
		return unicode.IsLetter(first) || unicode.IsDigit(first)
	}
	words := strings.Fields(text)
	var kept []string
	for i, word := range words {
		slash := word == "/" || word == "//"
		if !slash || i == 0 || i == len(words)-1 || !isWord(words[i-1]) || !isWord(words[i+1]) {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

func wordElsewhere(dir, word string) bool {
	word = strings.TrimPrefix(word, "@") // some tools read the file of @path
	if strings.HasPrefix(word, "~") || slices.Contains(strings.Split(word, "/"), "..") {
		return true
	}
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	rel, err := filepath.Rel(dir, Absolute(dir, word))
	return err != nil || !filepath.IsLocal(rel) || slices.ContainsFunc(strings.Split(rel, "/"), hidden)
}

// ShellWords returns the parts of a command line that could be paths. It splits the command line at spaces, quotes,
// operators of a shell, and signs such as "=" between an option and its value.
func ShellWords(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|<>(){}[]$=:,\\", r)
	})
}
