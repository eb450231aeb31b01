package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is the structure of a file: the position of each key.
type document struct {
	positions  map[string]position // by dotted key
	unreadable bool                // whether the file is not TOML
}

type position struct{ line, column int }

// decode decodes a file. Keys that are not in the file have their default values. decode reports all unknown keys and
// all values of the wrong kind. If the file is not valid TOML, it reports only that.
func decode(text []byte) (document, Config, problems) {
	var d decoder
	c := d.defaults()
	doc := document{positions: make(map[string]position)}
	values := make(map[string]any)
	if err := toml.Unmarshal(text, &values); err != nil {
		doc.unreadable = true
		return doc, c, syntaxProblem(err)
	}
	doc.read(text)
	d.table(nil, values, &c)
	return doc, c, d.found
}

func syntaxProblem(err error) problems {
	p := Problem{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		p.Line, p.Column = at.Position()
	}
	p.Text = "this is not TOML: " + p.Text
	return problems{p}
}

// read records the positions of all keys in valid TOML.
func (d document) read(text []byte) {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = d.record(&p, nil, n.Key())
		case unstable.KeyValue:
			d.recordPair(&p, table, n)
		}
	}
}

// recordPair records the position of a key. If its value is an inline table, it also records the keys in the table.
func (d document) recordPair(p *unstable.Parser, table []string, n *unstable.Node) {
	path := d.record(p, table, n.Key())
	if n.Value().Kind != unstable.InlineTable {
		return
	}
	for inner := n.Value().Children(); inner.Next(); {
		d.recordPair(p, path, inner.Node())
	}
}

// record records the position of a dotted key, and of each table in the dotted key. It returns the path of the key,
// which begins with the path of the table.
func (d document) record(p *unstable.Parser, table []string, key unstable.Iterator) []string {
	path := append([]string(nil), table...)
	for key.Next() {
		path = append(path, string(key.Node().Data))
		at := p.Shape(key.Node().Raw).Start
		if _, known := d.positions[dotted(path)]; !known {
			d.positions[dotted(path)] = position{at.Line, at.Column}
		}
	}
	return path
}

// locate sets the position of each problem. If the file does not contain the key of a problem, locate uses the position
// of the innermost table around the key.
func (d document) locate(found problems) {
	for i := range found {
		key := found[i].Key
		for key != "" && found[i].Line == 0 {
			at := d.positions[key]
			found[i].Line, found[i].Column = at.line, at.column
			key = key[:max(strings.LastIndexAny(key, ".["), 0)]
		}
	}
}

// below returns the dotted key of an entry in a table. A user chose the name of the entry, so it may need quotes.
func below(table, name string) string { return table + "." + dotted([]string{name}) }

// dotted formats a path as a dotted key of TOML. It quotes the parts that need quotes.
func dotted(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		if part == "" || strings.ContainsFunc(part, notBare) {
			parts[i] = strconv.Quote(part)
		}
	}
	return strings.Join(parts, ".")
}

func notBare(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}
