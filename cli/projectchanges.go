package cli

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// envMarksSuffix is the end of the name of the field that contains the marks of a .env file. The name starts with the
// file's path. Names of variables do not contain "#", so no field of a variable has the same name.
const envMarksSuffix = ": #"

// envMarks returns the name of each variable of a .env file with a mark of its value, such as "NAME=1f2e". A mark is
// the start of a hash. It is too short for guessing a secret value. SettingsChanges does not notice a change if the
// marks are equal.
func envMarks(text []byte) string {
	values := map[string]string{}
	var names []string
	for name, value := range envVariables(text) {
		if _, again := values[name]; !again {
			names = append(names, name)
		}
		values[name] += "\n" + value
	}
	for i, name := range names {
		sum := sha256.Sum256([]byte(name + values[name]))
		names[i] = fmt.Sprintf("%s=%x", name, sum[:2])
	}
	return strings.Join(names, " ")
}

// SettingsChanges compares two results of ReadProject, and returns the names of the settings that differ. The results
// of an older version of ductor have no marks of .env files; see envMarks. If before is such a result, SettingsChanges
// returns nil.
func SettingsChanges(before, now []Field) (names []string) {
	old, oldOrder, marked := settingValues(before)
	if !marked {
		return nil
	}
	current, order, _ := settingValues(now)
	for _, name := range order {
		if old[name] != current[name] {
			names = append(names, name)
		}
	}
	for _, name := range oldOrder {
		if _, there := current[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// settingValues returns the values of all settings by name, and the names in order. The value of a variable in a .env
// file is its mark; see envMarks. marked is false if the marks of a .env file are missing.
func settingValues(fields []Field) (values map[string]string, order []string, marked bool) {
	values = map[string]string{}
	add := func(name, value string) {
		if _, again := values[name]; !again {
			order = append(order, name)
		}
		values[name] += "\n" + value
	}
	unmarked := map[string]bool{} // .env files whose marks were not found yet
	for _, f := range fields {
		file, _, _ := strings.Cut(f.Name, ": ")
		switch {
		case f.Weight == LabelField && strings.HasSuffix(f.Name, envMarksSuffix):
			delete(unmarked, file)
			for mark := range strings.FieldsSeq(f.Value) {
				name, value, _ := strings.Cut(mark, "=")
				add(file+": "+name, value)
			}
		case f.Weight == LabelField:
		case strings.HasSuffix(file, ".env"):
			unmarked[file] = true
		default:
			add(f.Name, f.Value)
		}
	}
	return values, order, len(unmarked) == 0
}
