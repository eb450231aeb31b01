package cli

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// envMarksSuffix is the end of the name of a label. The label contains the marks of the variables in a .env file. Its
// name is the file's name with this suffix. The name of a variable never contains "#", so no variable has the label's
// name.
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

// SettingsChanges returns the names of the settings that differ between two results of ReadProject. It returns nil if
// the fields in before contain no marks of .env files, because an older version of ductor read them.
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

// settingValues returns the values of all settings by name, and the names in order. Variables in .env files have their
// marks as values. marked is false if the marks of such a file are missing.
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
