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

// Weight is the importance of a Field for the user who decides.
type Weight string

// The weights.
const (
	PlainField Weight = ""      // the card shows it
	WiderField Weight = "wider" // asks for more than usual: another directory, rights, network; the card shows it first
	EditField  Weight = "edit"  // describes how a file is changed; the card shows it
	LabelField Weight = "label" // identifies the request, or has its usual value; users do not see it
)

// Field is a value of a request's input that title, detail and changes do not contain.
type Field struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Weight Weight `json:"weight,omitempty"`
}

// Reading lists the known fields of one request of an agent. Users see every other field. Names have the form of Leaf's
// names. A name in Labels, Wider or Edit has no array indices, and also covers all fields below it.
type Reading struct {
	Dir string // the working directory of the turn
	// Said has the values that title, detail, reason and changes show completely. If a field has a different value, it
	// is shown.
	Said   map[string]string
	Usual  map[string]string // values without information, and null; a field with another value is shown
	Labels []string          // names of fields that only identify the request
	Wider  []string          // names of fields that ask for more rights
	Edit   []string          // names of fields that describe how a file is changed
}

// Fields returns the fields of an input that title, detail and changes do not contain, in their order.
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

// here reports whether a path names the working directory.
func (r Reading) here(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dir, path)
	}
	return r.Dir != "" && filepath.Clean(path) == filepath.Clean(r.Dir)
}

func below(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+".") })
}

// directoryFields lists the names that agents and their tools use for the directory of a command.
func directoryFields() []string {
	return []string{"cwd", "workdir", "working_directory", "workingDirectory", "dir_path"}
}

// wideningFields lists the names that agents use for wider rights, at any depth.
func wideningFields() []string {
	return []string{
		"dangerouslyDisableSandbox", "allowedPrompts", "grantRoot", "additionalPermissions", "additional_permissions",
		"networkApprovalContext", "with_escalated_permissions", "sandbox_permissions",
	}
}

// mostText limits a text in a long input, in bytes.
const mostText = 2 << 10

// ShortInput cuts an input to a number of bytes. It first cuts long texts in the input, and then the end. At each cut
// it writes how many bytes it left out.
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

// shortTexts cuts the long texts in a value of JSON.
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

// Leaf is a single value within JSON, without other values inside. Its Name is its path, such as `edits[0].path`. Keys
// that could be mistaken for a path are quoted.
type Leaf struct {
	Name, Value string // Value is the text of a string, or the JSON of other values
	Unset       bool   // null, false, {} or []
}

// Limits of Leaves. Everything beyond a limit becomes one leaf.
const (
	mostLeaves     = 2000
	mostLeafNames  = 256 << 10 // bytes of all names
	wholeInputName = "input"
)

// Leaves returns the values of an input in order. It keeps repeated keys. Invalid JSON becomes one leaf.
func Leaves(input json.RawMessage) []Leaf {
	if len(bytes.TrimSpace(input)) == 0 {
		return nil
	}
	whole := []Leaf{{Name: wholeInputName, Value: string(input)}}
	if !json.Valid(input) { // also limits its depth
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

// inside reads an object or a list up to its end.
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
