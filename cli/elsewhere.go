package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
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

// namesElsewhere reports whether a word of a text could be a path that is outside of dir or hidden. Addresses of web
// pages are no paths, unless they contain "..".
func namesElsewhere(dir, text string) bool {
	text = webAddress().ReplaceAllStringFunc(text, func(address string) string {
		if strings.Contains(address, "..") {
			return address
		}
		return " "
	})
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	return slices.ContainsFunc(ShellWords(text), func(word string) bool {
		word = strings.TrimPrefix(word, "@") // some tools read the file of @path
		if strings.HasPrefix(word, "~") || slices.Contains(strings.Split(word, "/"), "..") {
			return true
		}
		rel, err := filepath.Rel(dir, Absolute(dir, word))
		return err != nil || !filepath.IsLocal(rel) || slices.ContainsFunc(strings.Split(rel, "/"), hidden)
	})
}

// ShellWords returns the parts of a command line that could be paths. It splits the command line at spaces, quotes,
// operators of a shell, and signs such as "=" between an option and its value.
func ShellWords(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|<>(){}[]$=:,\\", r)
	})
}
