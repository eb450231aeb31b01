package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// setting is a setting or a table of settings.
type setting struct {
	key     string // dotted
	tag     reflect.StructTag
	applies Applies
	value   reflect.Value
}

// visit calls f for a setting and for all settings in it. f may change the settings if s is addressable. The tables of
// a map are not addressable. So f gets a copy of each of these tables, and visit writes the copy back into the map.
func visit(s setting, f func(setting)) {
	f(s)
	switch {
	case s.value.Kind() == reflect.Struct:
		for field, v := range s.value.Fields() {
			if inner, ok := s.inner(field, v); ok {
				visit(inner, f)
			}
		}
	case isNamed(s.value.Type()):
		for _, name := range slices.Sorted(maps.Keys(namesOf(s.value))) {
			table := reflect.New(s.value.Type().Elem()).Elem()
			table.Set(s.value.MapIndex(keyOf(s.value, name)))
			visit(setting{below(s.key, name), s.tag, s.applies, table}, f)
			if s.value.CanAddr() {
				s.value.SetMapIndex(keyOf(s.value, name), table)
			}
		}
	}
}

// inner returns the setting that a field of a table contains. It returns false if the field is not a setting.
func (s setting) inner(f reflect.StructField, v reflect.Value) (setting, bool) {
	inner := setting{s.key, f.Tag, cmp.Or(Applies(f.Tag.Get("applies")), s.applies), v}
	name := f.Tag.Get("toml")
	if !isInline(f) {
		inner.key = strings.TrimPrefix(s.key+"."+name, ".")
	}
	return inner, isInline(f) || name != "" && name != "-"
}

// isInline reports whether the fields of an embedded struct belong to the table around it.
func isInline(f reflect.StructField) bool {
	name := f.Tag.Get("toml")
	return name == ",inline" || f.Anonymous && name == ""
}

// isNamed reports whether a type is a map of tables, whose names the user chooses.
func isNamed(t reflect.Type) bool {
	return t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct
}

// keyOf converts a name to the key type of a map.
func keyOf(table reflect.Value, name string) reflect.Value {
	return reflect.ValueOf(name).Convert(table.Type().Key())
}

func namesOf(table reflect.Value) map[string]bool {
	names := map[string]bool{}
	for _, name := range table.MapKeys() {
		names[name.String()] = true
	}
	return names
}

// setDefaults sets the settings of a table to the values in their tags "default". The tags use TOML syntax, but strings
// have no quotes. Lists without a default become empty.
func (d *decoder) setDefaults(table reflect.Value) {
	visit(setting{value: table}, func(s setting) {
		text, ok := s.tag.Lookup("default")
		switch kind := s.value.Kind(); {
		case ok && (kind == reflect.String || s.value.Type() == reflect.TypeFor[time.Duration]()):
			d.value([]string{s.key}, text, s.value)
		case ok:
			var parsed map[string]any
			if err := toml.Unmarshal([]byte("value = "+text), &parsed); err != nil {
				panic(fmt.Sprintf("config: the default of %s: %v", s.key, err))
			}
			d.value([]string{s.key}, parsed["value"], s.value)
		case kind == reflect.Slice:
			s.value.Set(reflect.MakeSlice(s.value.Type(), 0, 0))
		}
	})
}

// checker is a table with rules that tags cannot express. For each setting that violates a rule, Check calls the
// function problem with the setting's key in the table. For a problem of the table itself, the key is "".
type checker interface {
	Check(problem func(key, format string, args ...any))
}

// check checks a setting by its tag "check". A table that implements checker also checks itself. The values of the tag
// are:
//   - "1..10" for a range of numbers or durations; "0|5..10" also allows 0
//   - "a|b" for a text that is one of these words, and for a list of these words without repetitions
//   - "url", together with the tag "example"
//   - "variables" for names of environment variables
//   - "assignments" for NAME=value
//
// A word or URL without a default may be empty.
func (p *problems) check(s setting) {
	if table, ok := s.value.Interface().(checker); ok {
		table.Check(func(key, format string, args ...any) {
			p.add(strings.Trim(s.key+"."+key, "."), format, args...)
		})
	}
	rule := s.tag.Get("check")
	least, most, isRange := strings.Cut(rule, "..")
	least, orZero := strings.CutPrefix(least, "0|")
	_, hasDefault := s.tag.Lookup("default")
	switch {
	case isRange && orZero && s.value.IsZero():
	case isRange:
		p.within(s.key, s.value, least, most)
	case rule == "assignments":
		p.checkAssignments(s.key, s.value.Interface().([]string))
	case rule == "variables":
		p.checkVariables(s.key, s.value.Interface().([]string))
	case rule == "url" && (hasDefault || s.value.String() != ""):
		if err := CheckURL(s.value.String(), cmp.Or(s.tag.Get("example"), s.tag.Get("default"))); err != nil {
			p.add(s.key, "%v", err)
		}
	case !strings.Contains(rule, "|"):
	case s.value.Kind() == reflect.Slice:
		p.words(s.key, s.value, strings.Split(rule, "|"))
	case hasDefault || s.value.String() != "":
		p.word(s.key, s.value.String(), strings.Split(rule, "|")...)
	}
}

// CheckURL returns an error unless text is an HTTP URL with a host.
func CheckURL(text, example string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("should be a URL such as %s", example)
	}
	return nil
}

// within checks that a value is between two bounds.
func (p *problems) within(key string, value reflect.Value, least, most string) {
	const text = "%v is out of bounds; it may be %v to %v"
	switch v := value.Interface().(type) {
	case time.Duration:
		if v < duration(least) || v > duration(most) {
			p.add(key, text, v, short(duration(least)), short(duration(most)))
		}
	case float64:
		// This condition also rejects NaN.
		if !(v >= number(least) && v <= number(most)) {
			p.add(key, text, v, least, number(most))
		}
	default:
		if n := float64(value.Int()); n < number(least) || n > number(most) {
			p.add(key, text, v, least, most)
		}
	}
}

// number and duration parse the minimum or maximum in a field's tag. They ignore errors, because a test checks that all
// tags can be parsed.
func number(bound string) float64 {
	n, _ := strconv.ParseFloat(bound, 64)
	return n
}

func duration(bound string) time.Duration {
	d, _ := time.ParseDuration(bound)
	return d
}

func (p *problems) word(key, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		p.add(key, "%s", oneOf(value, choices))
	}
}

// words checks a list of words. Each word must be one of the choices, and appear only once.
func (p *problems) words(key string, list reflect.Value, choices []string) {
	seen := map[string]bool{}
	for i := range list.Len() {
		w := list.Index(i).String()
		p.word(key, w, choices...)
		if slices.Contains(choices, w) && seen[w] {
			p.add(key, "%q is there twice", w)
		}
		seen[w] = true
	}
}

// short formats a duration like Duration.String, but without zeros at the end: "1h" and not "1h0m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// checkTogether checks rules that involve several settings.
func (c *Config) checkTogether(p *problems) {
	if a := c.Agents; a.StaleAfter <= a.TurnTimeout {
		p.add("agents.stale_after",
			"%s must be longer than turn_timeout, which is %s: else running turns count as stale",
			short(a.StaleAfter), short(a.TurnTimeout))
	}
}
