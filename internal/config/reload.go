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

// Applies is the time at which a changed setting applies.
type Applies string

// Values of the tag "applies". A setting without the tag inherits its table's value.
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

// Reloaded returns the configuration after a reload. It contains the settings of read that apply at once, and all
// others of c. It also returns all differences between c and read. If the combination of both is not valid, it returns
// an *Invalid.
func (c Config) Reloaded(read Config) (Config, []Changed, error) {
	next := c
	var changes []Changed
	merge(setting{value: reflect.ValueOf(&next).Elem()}, reflect.ValueOf(read), &changes)
	slices.SortStableFunc(changes, func(a, b Changed) int { return strings.Compare(a.Key, b.Key) })
	found := next.check()
	for i := range found {
		found[i].Text += "; this needs a key that applies after a restart only"
	}
	if err := found.asError(read.File); err != nil {
		return c, changes, err
	}
	next.ModelNames, next.Keys, next.Warnings = read.ModelNames, read.Keys, read.Warnings
	return next, changes, nil
}

// merge copies the settings that apply at once from from to into. It appends all differences to changes.
func merge(into setting, from reflect.Value, changes *[]Changed) {
	for f, v := range into.value.Fields() {
		inner, ok := into.inner(f, v)
		read := from.FieldByIndex(f.Index)
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

// differences appends the differences between s and now to changes. In a map of tables, it compares each key of each
// table.
func (s setting) differences(now reflect.Value, changes *[]Changed) {
	switch {
	case isNamed(s.value.Type()):
		names := namesOf(s.value)
		maps.Copy(names, namesOf(now))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			before, after := s.value.MapIndex(keyOf(now, name)), now.MapIndex(keyOf(now, name))
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
				inner.differences(now.FieldByIndex(f.Index), changes)
			}
		}
	case !equalValues(s.value, now):
		*changes = append(*changes, Changed{s.key, s.applies, s.shown(s.value), s.shown(now)})
	}
}

const mostShown = 80

// shown returns a value of the setting s as text. It returns "" for texts that may contain passwords. These are texts
// in settings of ACP agents, and in settings that apply after a restart.
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
