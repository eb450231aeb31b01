package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is where each key of a file stands.
type document struct {
	positions  map[string]position // by path
	unreadable bool                // it is no TOML
}

type position struct{ line, column int }

// decode reads text over the defaults. Mistakes of the TOML itself hide all others; otherwise every
// unknown key and every value of the wrong kind is found.
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

// read records the position of every key. The text has been decoded once and is known to be valid.
func (d document) read(text []byte) {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = d.note(&p, nil, n.Key())
		case unstable.KeyValue:
			d.pair(&p, table, n)
		}
	}
}

func (d document) pair(p *unstable.Parser, table []string, n *unstable.Node) {
	path := d.note(p, table, n.Key())
	if n.Value().Kind != unstable.InlineTable {
		return
	}
	for inner := n.Value().Children(); inner.Next(); {
		d.pair(p, path, inner.Node())
	}
}

// note remembers where a dotted key and the tables on its way stand, and returns the whole path.
func (d document) note(p *unstable.Parser, table []string, key unstable.Iterator) []string {
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

// locate gives each problem the position of its key, or of the nearest table around it that the file has.
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

// dotted writes a path as TOML does: parts that are no bare keys in quotes.
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
