package cli

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// envMarksSuffix ends the name of the field with the result of envMarks. The name is the path of the .env file and this
// suffix. The fields of variables have other names, because the name of a variable does not contain "#".
const envMarksSuffix = ": #"

// envMarks returns each variable of a .env file as its name and the first two bytes of a hash, such as "NAME=1f2e".
// SettingsChanges compares these short hashes instead of secret values. They are too short for guessing a value. If the
// hashes of two values are equal, SettingsChanges misses the change.
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

// SettingsChanges compares two results of ReadProject, and returns the names of the settings that differ. It returns
// nil if before is the result of an older version of ductor, which stored no hashes of the variables in .env files; see
// envMarks.
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

// settingValues returns the values of all settings by name, and the names in order. For a variable in a .env file, the
// value is the short hash from envMarks. marked is false if these hashes are missing for a .env file.
func settingValues(fields []Field) (values map[string]string, order []string, marked bool) {
	values = map[string]string{}
	add := func(name, value string) {
		if _, again := values[name]; !again {
			order = append(order, name)
		}
		values[name] += "\n" + value
	}
	unmarked := map[string]bool{} // .env files whose hashes have not been found yet
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
