package secrets

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Hidden describes the secrets that Clean has removed from a value.
type Hidden int

const (
	HiddenNothing Hidden = iota
	HiddenWord           // only plain words were removed; no commands, paths or URLs
	HiddenMore
)

var (
	textType = reflect.TypeFor[string]()
	jsonType = reflect.TypeFor[json.RawMessage]()
)

// Clean returns a copy of v without secrets. It cleans all strings and json.RawMessage values inside v, except strings
// of named types, which are IDs and kinds. It does not change v itself.
func Clean[T any](s *Set, v T) (T, Hidden) {
	if s == nil {
		return v, HiddenNothing
	}
	c := cleaner{set: s}
	box := reflect.New(reflect.TypeFor[T]()).Elem()
	box.Set(reflect.ValueOf(&v).Elem())
	c.walk(box)
	return box.Interface().(T), c.hidden
}

type cleaner struct {
	set    *Set
	hidden Hidden
}

// walk removes the secrets from v in place. It replaces pointers and slices by copies, because other values may use the
// same memory.
func (c *cleaner) walk(v reflect.Value) {
	switch {
	case v.Type() == textType:
		v.SetString(c.text(v.String()))
		return
	case v.Type() == jsonType:
		c.json(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		inner := reflect.New(v.Elem().Type())
		inner.Elem().Set(v.Elem())
		c.walk(inner.Elem())
		if v.Kind() == reflect.Pointer {
			v.Set(inner)
		} else {
			v.Set(inner.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				c.walk(f)
			}
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		for i := range list.Len() {
			c.walk(list.Index(i))
		}
		v.Set(list)
	}
}

func (c *cleaner) text(text string) string {
	clean := c.set.String(text)
	if clean != text {
		c.hidden = max(c.hidden, c.set.classify(text))
	}
	return clean
}

func (c *cleaner) json(v reflect.Value) {
	raw := string(v.Bytes())
	clean := c.text(raw)
	switch {
	case clean != raw && json.Valid([]byte(raw)) && !json.Valid([]byte(clean)): // removing the secret broke the JSON
		clean = "null"
	case strings.IndexByte(clean, '\\') >= 0 && json.Valid([]byte(clean)):
		clean = c.escaped(clean)
	}
	if clean != raw {
		v.SetBytes([]byte(clean))
	}
}

// escaped removes secrets from valid JSON. It decodes each string first, because a program may escape the characters of
// a secret in different ways.
func (c *cleaner) escaped(raw string) string {
	var b strings.Builder
	for {
		begin := strings.IndexByte(raw, '"')
		if begin < 0 {
			return b.String() + raw
		}
		end := begin + 1
		for ; raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		quoted, text := raw[begin:end+1], ""
		if strings.IndexByte(quoted, '\\') >= 0 && json.Unmarshal([]byte(quoted), &text) == nil {
			if clean := c.text(text); clean != text {
				again, _ := json.Marshal(clean) // a string can always be encoded
				quoted = string(again)
			}
		}
		b.WriteString(raw[:begin] + quoted)
		raw = raw[end+1:]
	}
}

func (s *Set) classify(text string) Hidden {
	for _, w := range s.words {
		if !isWord(w) && strings.Contains(text, w) {
			return HiddenMore
		}
	}
	return HiddenWord
}

// isWord reports whether text is one plain word for a shell. Paths, URLs and options do not count as words.
func isWord(text string) bool {
	for i, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case i > 0 && strings.ContainsRune("_-+=.:%@/", r):
		default:
			return false
		}
	}
	return !strings.Contains(text, "://")
}
