// Package lang is the catalogue of all texts that users read in a chat: one file for each screen below en, de and zh, and a
// Printer that fills them in.
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

// Key names a text: "menu.close" is the text "close" of the file menu.toml.
type Key string

// Printer gives the texts of the catalogue in one language. The zero value speaks English. Safe for concurrent use.
type Printer struct {
	of *message.Printer
}

// printers reads the texts of each language once, when the first of them is asked for.
var printers = func() map[Language]func() *message.Printer {
	all := map[Language]func() *message.Printer{}
	for _, l := range Languages() {
		all[l] = sync.OnceValue(func() *message.Printer {
			tag := language.Make(string(l))
			c := catalog.NewBuilder(catalog.Fallback(tag))
			if err := load(c, tag, string(l)); err != nil {
				panic(err) // the catalogue is a part of the program
			}
			return message.NewPrinter(tag, message.Catalog(c))
		})
	}
	return all
}()

// Printer gives the texts of l, and English ones if the catalogue does not have it.
func (l Language) Printer() Printer {
	of, ok := printers[l]
	if !ok {
		return Printer{}
	}
	return Printer{of()}
}

// Text is the text that key names, with args in its places. Texts with places have a constant key: a test compares the two.
// Numbers are written as the language does, 12,345 in English; a number that is a name, such as a process id, is an
// argument of type string.
func (p Printer) Text(key Key, args ...any) string {
	of := p.of
	if of == nil {
		of = printers[Languages()[0]]()
	}
	return of.Sprintf(string(key), args...)
}

// load adds the texts of a directory to c. A text is a string, or a table of its plural forms, which its first argument
// chooses from.
func load(c *catalog.Builder, tag language.Tag, dir string) error {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list texts: %w", err)
	}
	for _, e := range entries {
		data, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("read texts: %w", err)
		}
		var texts map[string]any
		if err := toml.Unmarshal(data, &texts); err != nil {
			return fmt.Errorf("texts of %s: %w", e.Name(), err)
		}
		screen := strings.TrimSuffix(e.Name(), ".toml")
		for name, text := range texts {
			if err := c.Set(tag, screen+"."+name, messageOf(text)); err != nil {
				return fmt.Errorf("text %s.%s: %w", screen, name, err)
			}
		}
	}
	return nil
}

// messageOf makes a message of a text of the catalogue.
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
