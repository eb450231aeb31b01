package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ductor/cli/acp"
	"ductor/internal/nearest"
)

// decoder decodes a parsed file into a Config. After a mistake it continues, in order to report all mistakes.
type decoder struct{ found problems }

// defaults returns the configuration of an empty file. Its paths are not absolute yet.
func (d *decoder) defaults() (c Config) {
	d.setDefaults(reflect.ValueOf(&c).Elem())
	return c
}

// table decodes a table into the struct to which out points.
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
	p := Problem{Key: dotted(path), Text: "there is no such " + what}
	name := path[len(path)-1]
	if near, ok := nearest.Of(name, siblings); ok {
		p.Text += fmt.Sprintf("; did you mean %q?", near)
		p.meant = dotted(append(slices.Clone(path[:len(path)-1]), near))
	} else if where, ok := tableWithKey(name); ok {
		p.Text += fmt.Sprintf("; it belongs in [%s]", where)
		p.meant = below(where, name)
	}
	d.found = append(d.found, p)
}

// value decodes one value into out. If the value has the wrong kind, value reports a problem that contains the expected
// kind. The problem does not contain the value, which may be a token.
func (d *decoder) value(path []string, in any, out reflect.Value) {
	wrong := func(want string) { d.found.add(dotted(path), "should be %s, not %s", want, kindOf(in)) }
	switch field := out.Addr().Interface().(type) {
	case *time.Duration:
		d.duration(path, in, field)
		return
	case *Sandbox:
		d.sandbox(path, in, field)
		return
	case *acp.Settings:
		presetAgent(path[len(path)-1], in, field)
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
	case reflect.Map:
		d.namedTables(path, in, out, func(table reflect.Value, _ any) { d.setDefaults(table) })
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
	// The document has only one position for the whole list, so report only the first problem.
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

// namedTables decodes a map of tables. The user chose the names of the tables. For each table, namedTables first calls
// prepare, and then decodes the settings.
func (d *decoder) namedTables(path []string, in any, out reflect.Value, prepare func(table reflect.Value, in any)) {
	tables, ok := in.(map[string]any)
	if !ok {
		d.found.add(dotted(path), "should be a table, not %s", kindOf(in))
		return
	}
	all := reflect.MakeMap(out.Type())
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		table := reflect.New(out.Type().Elem()).Elem()
		prepare(table, tables[name])
		d.value(append(slices.Clip(path), name), tables[name], table)
		all.SetMapIndex(keyOf(out, name), table)
	}
	out.Set(all)
}

// fieldsOf returns the fields of a table by their keys. It includes the fields of embedded structs, but not of inner
// tables.
func fieldsOf(table reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for f, v := range table.Fields() {
		switch key := f.Tag.Get("toml"); {
		case isInline(f):
			maps.Copy(fields, fieldsOf(v))
		case key != "" && key != "-":
			fields[key] = v
		}
	}
	return fields
}

// tableWithKey helps to correct a misplaced key. It returns the only table that can contain a key of this name. It
// returns false if there is no such table, or more than one.
func tableWithKey(name string) (table string, ok bool) {
	var found []string
	visit(setting{value: reflect.ValueOf(Config{})}, func(s setting) {
		if table, last, _ := cutLast(s.key); isValue(s) && last == name && table != "" {
			found = append(found, table)
		}
	})
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

func isValue(s setting) bool {
	return s.value.Kind() != reflect.Struct && s.value.Kind() != reflect.Map
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
