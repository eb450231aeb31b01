package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ductor/internal/secrets"
)

// Applies is the time at which the change of a setting takes effect.
type Applies string

// Values of the tag "applies". A setting without this tag applies at the same time as its table.
const (
	AtOnce       Applies = "at once" // right after a reload, so code must read the setting at each use
	AfterRestart Applies = "after a restart"
)

// Changed is a setting whose value in the file differs from the value in use.
type Changed struct {
	Key     string
	Applies Applies
	Before  string // previous value in one line, shortened; empty if unset or possibly secret
	After   string // new value, formatted like Before
}

// Reloaded combines the configuration in use, c, with a newly read configuration. Settings that apply at once come from
// the new configuration, all others from c. Reloaded also returns all differences between the two. If the combination
// is not valid, it returns an *Invalid.
func (c Config) Reloaded(latest Config) (Config, []Changed, error) {
	next := c
	var changes []Changed
	merge(setting{value: reflect.ValueOf(&next).Elem()}, reflect.ValueOf(latest), &changes)
	slices.SortStableFunc(changes, func(a, b Changed) int { return strings.Compare(a.Key, b.Key) })
	found := next.check()
	for i := range found {
		found[i].Text += "; this needs a key that applies after a restart only"
	}
	if err := found.asError(latest.File); err != nil {
		return c, changes, err
	}
	next.ModelNames, next.Keys, next.Warnings = latest.ModelNames, latest.Keys, latest.Warnings
	return next, changes, nil
}

// merge copies the settings that apply at once from a newly read table to the table in use. It appends all differences
// to changes.
func merge(inUse setting, newTable reflect.Value, changes *[]Changed) {
	for f, v := range inUse.value.Fields() {
		inner, ok := inUse.inner(f, v)
		read := newTable.FieldByIndex(f.Index)
		switch {
		case !ok:
		case v.Kind() == reflect.Struct:
			merge(inner, read, changes)
		case !equalValues(v, read):
			inner.differences(read, changes)
			if inner.applies == AtOnce {
				v.Set(read)
			}
		}
	}
}

// equalValues reports whether two values are equal. An empty list equals a missing list.
func equalValues(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// differences compares s with newValue, and appends the differences to changes. If s is a map of tables, it compares
// the settings in each table.
func (s setting) differences(newValue reflect.Value, changes *[]Changed) {
	switch {
	case isNamed(s.value.Type()):
		names := namesOf(s.value)
		maps.Copy(names, namesOf(newValue))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			before, after := s.value.MapIndex(keyOf(newValue, name)), newValue.MapIndex(keyOf(newValue, name))
			one := setting{below(s.key, name), s.tag, s.applies, before}
			switch {
			case !before.IsValid():
				*changes = append(*changes, Changed{Key: one.key, Applies: s.applies, After: "{...}"})
			case !after.IsValid():
				*changes = append(*changes, Changed{Key: one.key, Applies: s.applies, Before: "{...}"})
			default:
				one.differences(after, changes)
			}
		}
	case s.value.Kind() == reflect.Struct:
		for f, v := range s.value.Fields() {
			if inner, ok := s.inner(f, v); ok {
				inner.differences(newValue.FieldByIndex(f.Index), changes)
			}
		}
	case !equalValues(s.value, newValue):
		*changes = append(*changes, Changed{s.key, s.applies, s.shown(s.value), s.shown(newValue)})
	}
}

const mostShown = 80

// shown returns a value of the setting s as text for users. It returns "" for texts that may contain a password: those
// in the settings of ACP agents, and those that only apply after a restart, such as addresses and proxies.
func (s setting) shown(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case secrets.Value:
		return ""
	case time.Duration:
		return value.String()
	}
	hidden := s.applies == AfterRestart || strings.HasPrefix(s.key, "agents.acp.")
	if k := v.Kind(); hidden && (k == reflect.String || k == reflect.Slice || k == reflect.Map) {
		return ""
	}
	text := []rune(hideTokens(oneLine(fmt.Sprintf("%v", v.Interface()))))
	if v.Kind() == reflect.String {
		text = []rune(fmt.Sprintf("%q", string(text)))
	}
	if len(text) > mostShown {
		text = append(text[:mostShown-1], '…')
	}
	return string(text)
}
