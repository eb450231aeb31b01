package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"ductor/cli/acp"
	"ductor/internal/rooted"
)

// Change sets one key in a file to a new value.
type Change struct {
	Table, Key string // such as "telegram" and "token"
	Value      any    // a string, a number, or a list of them
	Comment    string // comment to write above the key if the file does not contain the key yet
}

// Edit applies changes to the text of a file, and returns the new text. It preserves everything else, including
// comments and unknown keys. If the file has a form that Edit cannot change, the error contains the key of the change.
func Edit(text []byte, changes []Change) ([]byte, error) {
	for _, c := range changes {
		next, err := edit(text, c)
		if err != nil {
			return nil, fmt.Errorf("set %s.%s: %w", c.Table, c.Key, err)
		}
		text = next
	}
	return text, nil
}

func edit(text []byte, c Change) ([]byte, error) {
	value, err := literal(c.Value)
	if err != nil {
		return nil, err
	}
	at, err := find(text, c)
	if err != nil {
		return nil, err
	}
	line := c.Key + " = " + value + "\n"
	if c.Comment != "" {
		line = "# " + strings.ReplaceAll(c.Comment, "\n", "\n# ") + "\n" + line
	}
	var next []byte
	switch {
	case at.end > 0:
		next = splice(text, at.start, at.end, value)
	case at.table >= 0:
		next = splice(text, at.table, at.table, line)
	default:
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(bytes.Clone(text), '\n')
		}
		if len(text) > 0 {
			line = "\n[" + c.Table + "]\n" + line
		} else {
			line = "[" + c.Table + "]\n" + line
		}
		next = splice(text, len(text), len(text), line)
	}
	return next, checkEdit(text, next, c)
}

func splice(text []byte, from, to int, with string) []byte {
	return bytes.Join([][]byte{text[:from], []byte(with), text[to:]}, nil)
}

// literal formats a value as TOML on one line.
func literal(value any) (string, error) {
	out, err := toml.Marshal(map[string]any{"v": value})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "v = ")), nil
}

// place describes where a key is in a text. Positions are in bytes.
type place struct {
	start, end int // start and end of the value; 0 if the key is missing
	table      int // where to insert the key if the table lacks it; -1 if the file does not contain the table
}

func find(text []byte, c Change) (place, error) {
	at := place{table: -1}
	var p unstable.Parser
	p.Reset(text)
	var table string
	for p.NextExpression() {
		n := p.Expression()
		path, end := pathOf(n)
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			if table = path; table == c.Table && n.Kind == unstable.Table {
				at.table = lineAfter(text, end)
			}
		case unstable.KeyValue:
			if strings.TrimPrefix(table+"."+path, ".") == c.Table+"."+c.Key {
				at.start, at.end = valueAfter(text, end)
			}
		}
	}
	return at, p.Error()
}

// pathOf returns the dotted key of an expression and the end of the key in the text.
func pathOf(n *unstable.Node) (path string, end int) {
	var parts []string
	for key := n.Key(); key.Next(); {
		parts = append(parts, string(key.Node().Data))
		end = int(key.Node().Raw.Offset + key.Node().Raw.Length)
	}
	return dotted(parts), end
}

func lineAfter(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// valueAfter returns the start and end of a value in valid TOML. The key of the value ends at keyEnd.
func valueAfter(text []byte, keyEnd int) (start, end int) {
	start = keyEnd + bytes.IndexByte(text[keyEnd:], '=') + 1
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	depth := 0
	for i := start; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			i = stringEnd(text, i)
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '#':
			if depth == 0 {
				return start, start + len(bytes.TrimRight(text[start:i], " \t"))
			}
			i = lineAfter(text, i) - 1
		case '\n':
			if depth == 0 {
				return start, start + len(bytes.TrimRight(text[start:i], " \t\r"))
			}
		}
	}
	return start, start + len(bytes.TrimRight(text[start:], " \t\r\n"))
}

// stringEnd returns the position of the last quote of the string that begins at the given position.
func stringEnd(text []byte, begin int) int {
	quote := text[begin : begin+1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(text[begin:], triple) {
		quote = triple
	}
	for i := begin + len(quote); i < len(text); i++ {
		if text[i] == '\\' && quote[0] == '"' {
			i++
		} else if bytes.HasPrefix(text[i:], quote) {
			end := i + len(quote) - 1
			// Up to two quotes before the closing three quotes belong to the string.
			for len(quote) == 3 && end+1 < len(text) && text[end+1] == quote[0] {
				end++
			}
			return end
		}
	}
	return len(text) - 1
}

var errUneditable = errors.New("the file has it in a form that cannot be changed; set it by hand")

// checkEdit compares the texts before and after an edit. It returns an error unless c is the only difference.
func checkEdit(old, next []byte, c Change) error {
	var before, after, changed map[string]any
	if err := toml.Unmarshal(old, &before); err != nil {
		return err
	}
	if err := toml.Unmarshal(next, &after); err != nil {
		return errUneditable
	}
	raw, err := toml.Marshal(map[string]any{"v": c.Value})
	if err == nil {
		err = toml.Unmarshal(raw, &changed)
	}
	if err != nil {
		return err
	}
	if before == nil {
		before = map[string]any{}
	}
	in := before
	for name := range strings.SplitSeq(c.Table, ".") {
		inner, ok := in[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[name] = inner
		}
		in = inner
	}
	in[c.Key] = changed["v"]
	if !reflect.DeepEqual(before, after) {
		return errUneditable
	}
	return nil
}

// Replace replaces the file at path atomically, with mode 0600. If text is not a valid configuration, Replace returns
// an error and changes nothing. If path is a symbolic link, Replace replaces the target of the link.
func Replace(path string, text []byte, env Environment) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return rooted.ReplaceFile(path, text, func(part string) error {
		_, err := LoadFrom(filepath.Join(filepath.Dir(path), part), env)
		return err
	})
}

// AddAgent adds an agent of the ACP catalogue to the file at path.
func AddAgent(path, id string, env Environment) error {
	e, known := acp.FindEntry(id)
	text, _, err := readSmall(path)
	if err == nil && !known {
		err = errors.New("the catalogue does not have it")
	}
	if err == nil {
		text, err = Edit(text, []Change{AgentChange(e)})
	}
	if err == nil {
		err = Replace(path, text, env)
	}
	if err != nil {
		return fmt.Errorf("add %s to %s: %w", id, path, err)
	}
	return nil
}

// AgentChange returns the change that adds an agent of the ACP catalogue to a file.
func AgentChange(e acp.Entry) Change {
	return Change{Table: below("agents.acp", e.ID), Key: "path", Value: e.Command,
		Comment: e.Name + ". ductor agents lists it, and docs/agents.md has what can be set besides."}
}

// Draft reads a configuration that need not be complete; for example, the token may be missing. The file may be
// missing, too. All settings in the file must be valid. Draft also returns the content of the file.
func Draft(path string, env Environment) (c Config, text []byte, err error) {
	text, info, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err == nil {
		err = checkTrust(path, info)
	}
	if err != nil {
		return Config{}, nil, fmt.Errorf("read configuration: %w", err)
	}
	doc, c, found := decode(text)
	if !doc.unreadable {
		found = append(found, resolve(&c, env)...)
	}
	if len(found) > 0 {
		doc.locate(found)
		return Config{}, nil, found.asError(path)
	}
	c.File = path
	if c.Telegram.TokenFile != "" && c.Telegram.Token == "" {
		if found := findToken(&c, env); len(found) > 0 {
			return Config{}, nil, found.asError(path)
		}
	}
	return c, text, nil
}
