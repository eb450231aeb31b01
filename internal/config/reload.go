package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Counts says when a changed key counts.
type Counts string

// When a changed key counts.
const (
	AtOnce       Counts = "at once" // when the file is reloaded
	AfterRestart Counts = "after a restart"
)

// counting is the one table that says of each key when a change applies. A table stands for those of its keys that are not
// here themselves. Who makes a key count at once has what the key says read from the configuration in use each time.
func counting() map[string]Counts {
	return map[string]Counts{
		"telegram": AfterRestart, "telegram.allowed_users": AtOnce, "telegram.allowed_groups": AtOnce, "telegram.group_members": AtOnce,
		"telegram.group_trigger": AtOnce, "telegram.abort_words": AtOnce, "telegram.reactions": AtOnce,
		"users": AtOnce, "roles": AtOnce, "models": AtOnce, "jobs": AtOnce, "heartbeat": AtOnce,
		"stream": AtOnce, "budget": AtOnce, "retention": AtOnce,
		"notify": AtOnce, "notify.alerts": AfterRestart,
		"queue": AfterRestart, "queue.max": AtOnce,
		"sessions": AtOnce, "sessions.summary_model": AfterRestart,
		"recovery": AtOnce, "recovery.failures": AfterRestart,
		"agents": AfterRestart, "agents.claude.model": AtOnce, "agents.claude.effort": AtOnce, "agents.codex.model": AtOnce, "agents.codex.effort": AtOnce,
		"agents.gemini.model": AtOnce, "agents.gemini.effort": AtOnce, "agents.copilot.model": AtOnce, "agents.copilot.effort": AtOnce,
		"permissions": AtOnce, "permissions.ask_timeout": AfterRestart,
		"consult": AtOnce, "projects": AfterRestart, "projects.named": AtOnce,
		"storage": AfterRestart, "storage.retention_days": AtOnce,
		"log": AfterRestart, "log.level": AtOnce,
		"mcp": AfterRestart, "tracing": AfterRestart, "health": AfterRestart, "files": AfterRestart, "voice": AfterRestart,
		"sandbox": AfterRestart, "webhooks": AfterRestart, "rate": AfterRestart, "upgrade": AfterRestart,
	}
}

// CountsOf says when a change of a key counts; false for a key of which nothing is said.
func CountsOf(key string) (Counts, bool) {
	all := counting()
	for at := key; ; {
		if c, ok := all[at]; ok {
			return c, true
		}
		table, _, more := cutLast(at)
		if !more {
			return AfterRestart, false
		}
		at = table
	}
}

// Changed is a key that the file says otherwise than the configuration in use.
type Changed struct {
	Key    string
	Counts Counts
	Before string // as text in one line, shortened; empty where there was nothing, and for what may hold a secret
	After  string // likewise
}

// Reloaded is c as it counts once the file is read again without a restart: it has what read says of keys that count at
// once, and the rest of c. An error is *Invalid: some keys of read need others that count after a restart only.
func (c Config) Reloaded(read Config) (Config, []Changed, error) {
	next := c
	changes := merge(reflect.ValueOf(&next).Elem(), reflect.ValueOf(&read).Elem(), "")
	slices.SortStableFunc(changes, func(a, b Changed) int { return strings.Compare(a.Key, b.Key) })
	found := next.check()
	for i := range found {
		found[i].Text += "; this needs a key that counts after a restart only"
	}
	if err := found.asError(read.File); err != nil {
		return c, changes, err
	}
	next.ModelNames, next.Warnings = read.ModelNames, read.Warnings
	return next, changes, nil
}

// merge sets what counts at once in a table, and lists what differs.
func merge(into, from reflect.Value, prefix string) (changes []Changed) {
	now := fieldsOf(from)
	for name, f := range fieldsOf(into) {
		key, read := prefix+name, now[name]
		if f.Kind() == reflect.Struct {
			changes = append(changes, merge(f, read, key+".")...)
			continue
		}
		if equalValues(f, read) {
			continue
		}
		counts, _ := CountsOf(key)
		changes = append(changes, differences(f, read, key, counts)...)
		if counts == AtOnce {
			f.Set(read)
		}
	}
	return changes
}

// equalValues says whether two values mean the same: an empty list is no list.
func equalValues(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// differences lists what differs between two values, in a table of names each key of each name.
func differences(a, b reflect.Value, key string, counts Counts) (all []Changed) {
	switch {
	case a.Kind() == reflect.Map && a.Type().Elem().Kind() == reflect.Struct:
		names := map[string]bool{}
		for _, m := range []reflect.Value{a, b} {
			for _, name := range m.MapKeys() {
				names[name.String()] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			before, after := a.MapIndex(reflect.ValueOf(name)), b.MapIndex(reflect.ValueOf(name))
			of := key + "." + dotted([]string{name})
			switch {
			case !before.IsValid():
				all = append(all, Changed{Key: of, Counts: counts, After: "{...}"})
			case !after.IsValid():
				all = append(all, Changed{Key: of, Counts: counts, Before: "{...}"})
			default:
				all = append(all, differences(before, after, of, counts)...)
			}
		}
	case a.Kind() == reflect.Struct:
		now := fieldsOf(b)
		for name, f := range fieldsOf(a) {
			all = append(all, differences(f, now[name], key+"."+name, counts)...)
		}
	case !equalValues(a, b):
		all = append(all, Changed{Key: key, Counts: counts, Before: shown(a, counts), After: shown(b, counts)})
	}
	return all
}

// mostShown bounds what is shown of a value, in characters.
const mostShown = 80

// shown is a value as text. Texts that count after a restart only are not shown: arguments, variables and addresses may hold
// passwords.
func shown(v reflect.Value, counts Counts) string {
	switch of := v.Interface().(type) {
	case Secret:
		return ""
	case time.Duration:
		return of.String()
	}
	if k := v.Kind(); counts == AfterRestart && (k == reflect.String || k == reflect.Slice || k == reflect.Map) {
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
