package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ductor/internal/nearest"
)

// decoder puts the values of a file into a Config. It continues after a mistake, so that all of them are found.
type decoder struct{ found problems }

// table reads in into the struct that out points to.
func (d *decoder) table(path []string, in map[string]any, out any) {
	fields := fieldsOf(reflect.ValueOf(out).Elem())
	for _, name := range slices.Sorted(maps.Keys(in)) {
		at := append(slices.Clip(path), name)
		field, known := fields[name]
		if !known {
			d.unknown(at, in[name], slices.Collect(maps.Keys(fields)))
			continue
		}
		d.value(at, in[name], field)
	}
}

func (d *decoder) unknown(path []string, value any, siblings []string) {
	what := "key"
	if _, ok := value.(map[string]any); ok {
		what = "table"
	}
	text := "there is no such " + what
	name := path[len(path)-1]
	if near, ok := nearest.Of(name, siblings); ok {
		text += fmt.Sprintf("; did you mean %q?", near)
	} else if where, ok := elsewhere(name); ok {
		text += fmt.Sprintf("; it belongs in [%s]", where)
	}
	d.found.add(dotted(path), "%s", text)
}

// special reads a value of a type that has rules of its own; false for any other.
func (d *decoder) special(path []string, in, out any) bool {
	switch field := out.(type) {
	case *time.Duration:
		d.duration(path, in, field)
	case *Sandbox:
		d.sandbox(path, in, field)
	case *map[string]User:
		named(d, path, in, field, func() User { return User{Role: UserUser} })
	case *map[string]Role:
		named(d, path, in, field, defaultRole)
	case *map[string]Alias:
		named(d, path, in, field, func() Alias { return Alias{} })
	case *map[string]Job:
		named(d, path, in, field, defaultJob)
	case *map[string]Hook:
		named(d, path, in, field, defaultHook)
	case *map[string]Project:
		named(d, path, in, field, defaultProject)
	case *map[string]ACP:
		named(d, path, in, field, defaultACP)
	default:
		return false
	}
	return true
}

// value reads one value into out, or says what it should have been. Values are not shown: one of them may be
// a token.
func (d *decoder) value(path []string, in any, out reflect.Value) {
	wrong := func(want string) { d.found.add(dotted(path), "should be %s, not %s", want, kindOf(in)) }
	if d.special(path, in, out.Addr().Interface()) {
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		if table, ok := in.(map[string]any); ok {
			d.table(path, table, out.Addr().Interface())
		} else {
			wrong("a table")
		}
	case reflect.String:
		if s, ok := in.(string); ok {
			out.SetString(s)
		} else {
			wrong(`text in quotes`)
		}
	case reflect.Bool:
		if b, ok := in.(bool); ok {
			out.SetBool(b)
		} else {
			wrong("true or false")
		}
	case reflect.Int, reflect.Int64:
		if n, ok := in.(int64); ok {
			out.SetInt(n)
		} else {
			wrong("a whole number")
		}
	case reflect.Float64:
		switch n := in.(type) {
		case int64:
			out.SetFloat(float64(n))
		case float64:
			out.SetFloat(n)
		default:
			wrong("a number")
		}
	case reflect.Slice:
		d.list(path, in, out)
	default:
		panic(fmt.Sprintf("config: a setting of type %s cannot be read", out.Type()))
	}
}

func (d *decoder) list(path []string, in any, out reflect.Value) {
	items, ok := in.([]any)
	if !ok {
		d.found.add(dotted(path), "should be a list in [ ], not %s", kindOf(in))
		return
	}
	list := reflect.MakeSlice(out.Type(), len(items), len(items))
	before := len(d.found)
	for i, item := range items {
		d.value(path, item, list.Index(i))
	}
	if len(d.found) == before {
		out.Set(list)
		return
	}
	// One line for the list: its items have no position of their own.
	d.found = d.found[:before+1]
	d.found[before].Text = "each item " + d.found[before].Text
}

func (d *decoder) duration(path []string, in any, out *time.Duration) {
	const want = `should be a duration in quotes, such as "90s" or "1h30m"`
	s, ok := in.(string)
	if !ok {
		d.found.add(dotted(path), "%s, not %s", want, kindOf(in))
		return
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		d.found.add(dotted(path), "%s, not %q", want, s)
		return
	}
	*out = v
}

// named reads a table whose keys are names that the owner chose.
func named[T any](d *decoder, path []string, in any, out *map[string]T, fresh func() T) {
	table, ok := in.(map[string]any)
	if !ok {
		d.found.add(dotted(path), "should be a table, not %s", kindOf(in))
		return
	}
	all := make(map[string]T)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		one := fresh()
		d.value(append(slices.Clip(path), name), table[name], reflect.ValueOf(&one).Elem())
		all[name] = one
	}
	*out = all
}

// fieldsOf lists the settings of a struct by key; those of embedded structs are its own.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			maps.Copy(fields, fieldsOf(v.Field(i)))
			continue
		}
		if tag := f.Tag.Get("toml"); tag != "" && tag != "-" {
			fields[tag] = v.Field(i)
		}
	}
	return fields
}

// elsewhere finds a key that was written outside its table.
func elsewhere(name string) (table string, ok bool) {
	c := defaults()
	var found []string
	for _, key := range keysOf(reflect.ValueOf(&c).Elem(), "") {
		if table, last, _ := cutLast(key); last == name && table != "" {
			found = append(found, table)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// keysOf lists the dotted keys of a struct, without those of tables whose names are the owner's.
func keysOf(v reflect.Value, prefix string) []string {
	var keys []string
	for name, f := range fieldsOf(v) {
		switch f.Kind() {
		case reflect.Struct:
			keys = append(keys, keysOf(f, prefix+name+".")...)
		case reflect.Map:
		default:
			keys = append(keys, prefix+name)
		}
	}
	slices.Sort(keys)
	return keys
}

func cutLast(key string) (table, last string, ok bool) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key, false
	}
	return key[:i], key[i+1:], true
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case int64:
		return "a number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return "a date or a time"
	}
}
