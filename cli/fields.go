package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Weight determines how prominently users see a Field.
type Weight string

// Weight values.
const (
	PlainField Weight = ""      // users see the field
	WiderField Weight = "wider" // asks for more rights than usual, such as network access; users see the field first
	EditField  Weight = "edit"  // describes a change of a file, which users see as a diff
	LabelField Weight = "label" // only identifies the request, or has a usual value; users do not see the field
)

// Field is a value in a request's input that users would not see in the request's title, detail or changes.
type Field struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Weight Weight `json:"weight,omitempty"`
}

// Reading describes the fields that a provider knows in the input of a request for approval. Its method Fields returns
// the values that users must see in addition to the title, the detail and the changes.
//
// Names of fields have the form of Leaf.Name. In Labels, Wider and Edit, names have no array indices. A name in Labels
// or Wider also covers all fields below the named field.
type Reading struct {
	Dir string // the working directory of the turn
	// Said maps a field to the value that users already see in the title, the detail, the reason or the changes. The
	// method Fields omits the field if its value in the input equals the value in Said.
	Said   map[string]string
	Usual  map[string]string // for each field, a usual value, which users need not see; null is usual for every field
	Labels []string          // names of fields that only identify the request
	Wider  []string          // names of fields that ask for more rights
	Edit   []string          // names of fields that describe how a file is changed
}

// Fields returns the values of an input with their weights, in order. It omits the values in Said, which users already
// see.
func (r Reading) Fields(input json.RawMessage) []Field {
	fields := []Field{}
	for _, l := range Leaves(input) {
		if said, is := r.Said[l.Name]; is && said == l.Value {
			continue
		}
		fields = append(fields, Field{Name: l.Name, Value: l.Value, Weight: r.weigh(l)})
	}
	return fields
}

var indices = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[\d+\]`) })

func (r Reading) weigh(l Leaf) Weight {
	name := indices().ReplaceAllString(l.Name, "")
	words := strings.Split(name, ".")
	switch usual, is := r.Usual[name]; {
	case slices.Contains(directoryFields(), words[len(words)-1]):
		if l.Value == "null" || r.here(l.Value) {
			return LabelField
		}
		return WiderField
	case below(name, r.Wider), slices.ContainsFunc(words,
		func(w string) bool { return slices.Contains(wideningFields(), w) }):
		switch {
		case !l.Unset:
			return WiderField
		case l.Value == "null":
			return LabelField
		}
	case is && (usual == l.Value || l.Value == "null"), below(name, r.Labels):
		return LabelField
	case slices.Contains(r.Edit, name):
		return EditField
	}
	return PlainField
}

func (r Reading) here(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dir, path)
	}
	return r.Dir != "" && filepath.Clean(path) == filepath.Clean(r.Dir)
}

func below(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+".") })
}

// directoryFields lists the input fields in which agents and their tools name the directory of a command.
func directoryFields() []string {
	return []string{"cwd", "workdir", "working_directory", "workingDirectory", "dir_path"}
}

// wideningFields lists the input fields, at any depth, in which agents ask for more rights.
func wideningFields() []string {
	return []string{
		"dangerouslyDisableSandbox", "allowedPrompts", "grantRoot", "additionalPermissions", "additional_permissions",
		"networkApprovalContext", "with_escalated_permissions", "sandbox_permissions",
	}
}

// mostText is the length in bytes to which ShortInput shortens each text in a long input.
const mostText = 2 << 10

// ShortInput shortens an input to at most the given number of bytes. It first shortens long texts in the input, and
// then cuts off the end. At each cut, a note says how many bytes are missing.
func ShortInput(input json.RawMessage, most int) json.RawMessage {
	if len(input) <= most {
		return input
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var short bytes.Buffer
	encoder := json.NewEncoder(&short)
	encoder.SetEscapeHTML(false)
	if most > 0 && decoder.Decode(&value) == nil && encoder.Encode(shortTexts(value)) == nil {
		input = bytes.TrimSuffix(short.Bytes(), []byte("\n"))
	}
	return json.RawMessage(shortText(string(input), most))
}

// shortTexts shortens the long texts in a JSON value.
func shortTexts(value any) any {
	switch v := value.(type) {
	case string:
		return shortText(v, mostText)
	case []any:
		for i := range v {
			v[i] = shortTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortTexts(v[name])
		}
	}
	return value
}

func shortText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := strings.TrimSuffix(Shorten(text, most), "…")
	return fmt.Sprintf("%s… [+%d bytes]", kept, len(text)-len(kept))
}

// Leaf is a single JSON value: a string, number, boolean or null, or an empty object or list. Name is its path in the
// input, such as `edits[0].path`. The path quotes keys that look like a path themselves.
type Leaf struct {
	Name, Value string // Value is the text of a string, or the JSON of other values
	Unset       bool   // whether the value is null, false, {} or []
}

// Limits of Leaves. If an input exceeds a limit, Leaves returns the input as a single leaf.
const (
	mostLeaves     = 2000
	mostLeafNames  = 256 << 10 // bytes of all names
	wholeInputName = "input"
)

// Leaves returns the leaves of a JSON value, in order. If a key occurs twice, Leaves returns both values. If the input
// is invalid JSON, Leaves returns the whole input as one leaf.
func Leaves(input json.RawMessage) []Leaf {
	if len(bytes.TrimSpace(input)) == 0 {
		return nil
	}
	whole := []Leaf{{Name: wholeInputName, Value: string(input)}}
	// Valid also rejects JSON that is nested too deeply.
	if !json.Valid(input) {
		return whole
	}
	w := leafWalk{dec: json.NewDecoder(bytes.NewReader(input))}
	w.dec.UseNumber()
	if err := w.value(""); err != nil {
		return whole
	}
	return w.leaves
}

type leafWalk struct {
	dec    *json.Decoder
	leaves []Leaf
	names  int
}

func (w *leafWalk) value(name string) error {
	token, err := w.dec.Token()
	if err != nil {
		return fmt.Errorf("read an input: %w", err)
	}
	switch v := token.(type) {
	case json.Delim:
		return w.inside(name, v)
	case string:
		return w.add(name, v, false)
	case bool:
		return w.add(name, strconv.FormatBool(v), !v)
	case nil:
		return w.add(name, "null", true)
	}
	return w.add(name, fmt.Sprint(token), false)
}

// inside reads an object or a list after its opening bracket.
func (w *leafWalk) inside(name string, open json.Delim) error {
	i := 0
	for ; w.dec.More(); i++ {
		at := name + "[" + strconv.Itoa(i) + "]"
		if open == '{' {
			key, err := w.dec.Token()
			if err != nil {
				return fmt.Errorf("read an input: %w", err)
			}
			at = fieldName(name, fmt.Sprint(key))
		}
		if err := w.value(at); err != nil {
			return err
		}
	}
	if _, err := w.dec.Token(); err != nil {
		return fmt.Errorf("read an input: %w", err)
	}
	if i > 0 {
		return nil
	}
	return w.add(name, map[json.Delim]string{'{': "{}", '[': "[]"}[open], true)
}

var plainKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

func fieldName(of, key string) string {
	switch {
	case !plainKey().MatchString(key):
		return of + "[" + strconv.Quote(key) + "]"
	case of == "":
		return key
	}
	return of + "." + key
}

var errManyLeaves = errors.New("the input has too many values")

func (w *leafWalk) add(name, value string, unset bool) error {
	if name == "" {
		name = wholeInputName
	}
	if w.names += len(name); len(w.leaves) == mostLeaves || w.names > mostLeafNames {
		return errManyLeaves
	}
	w.leaves = append(w.leaves, Leaf{Name: name, Value: value, Unset: unset})
	return nil
}
