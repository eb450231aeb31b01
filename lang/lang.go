// Package lang contains all texts that users read in a chat. Each of the directories en, de and zh has one file for
// each screen. A Printer fills in the values of a text.
package lang

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

//go:embed en/*.toml de/*.toml zh/*.toml
var files embed.FS

// Key identifies a text: "menu.close" is the text "close" in the file menu.toml.
type Key string

// Printer returns texts in one language. The zero value uses English. Safe for concurrent use.
type Printer struct {
	of *texts
}

// texts contains the texts of one language. It reads a file when a text of the file is first used, because most
// processes need only a few files.
type texts struct {
	lang    Language
	mu      sync.RWMutex
	screens map[string]*message.Printer
}

var catalogue = func() map[Language]*texts {
	all := map[Language]*texts{}
	for _, l := range Languages() {
		all[l] = &texts{lang: l, screens: map[string]*message.Printer{}}
	}
	return all
}()

// Printer returns the Printer of a language. For a language without texts, it returns the English Printer.
func (l Language) Printer() Printer { return Printer{catalogue[l]} }

// IsEnglish reports whether the texts are English.
func (p Printer) IsEnglish() bool { return p.of == nil || p.of.lang == Languages()[0] }

// Text returns a text with args in its placeholders. If the text has placeholders, key must be a constant, because a
// test compares the placeholders with the arguments. Text formats numbers for the language, for example 12,345 in
// English. Pass process IDs and similar numbers as strings, so that they are not formatted. For an unknown key, Text
// returns the key.
func (p Printer) Text(key Key, args ...any) string {
	of := p.of
	if of == nil {
		of = catalogue[Languages()[0]]
	}
	screen, _, _ := strings.Cut(string(key), ".")
	return of.screen(screen).Sprintf(string(key), args...)
}

// screen returns the printer for a file, given the file's name without ".toml".
func (t *texts) screen(name string) *message.Printer {
	t.mu.RLock()
	p := t.screens[name]
	t.mu.RUnlock()
	if p != nil {
		return p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p = t.screens[name]; p == nil {
		p = read(t.lang, name)
		t.screens[name] = p
	}
	return p
}

// read reads the texts of a file. A text is a string, or a table of plural forms from which the first argument selects
// one.
func read(l Language, screen string) *message.Printer {
	tag := language.Make(string(l))
	c := catalog.NewBuilder(catalog.Fallback(tag))
	data, err := files.ReadFile(path.Join(string(l), screen+".toml"))
	if err != nil {
		return message.NewPrinter(tag, message.Catalog(c))
	}
	var texts map[string]any
	if err := toml.Unmarshal(data, &texts); err != nil {
		panic(fmt.Errorf("texts of %s in %s: %w", screen, l, err)) // a bug of ductor, because the file is embedded
	}
	for name, text := range texts {
		if err := c.Set(tag, screen+"."+name, messageOf(text)); err != nil {
			panic(fmt.Errorf("text %s.%s in %s: %w", screen, name, l, err))
		}
	}
	return message.NewPrinter(tag, message.Catalog(c))
}

// messageOf converts a text from a file.
func messageOf(text any) catalog.Message {
	forms, isPlural := text.(map[string]any)
	if !isPlural {
		return catalog.String(fmt.Sprint(text))
	}
	var cases []any
	for form, s := range forms {
		if form != "other" {
			cases = append(cases, form, s)
		}
	}
	return plural.Selectf(1, "%d", append(cases, "other", forms["other"])...)
}
