package cli

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// envMarksSuffix follows the name of a .env file in the name of a label with the marks of its variables. No variable has
// a name with this character.
const envMarksSuffix = ": #"

// envMarks returns the name of each variable of a .env file with a mark of its value, such as "NAME=1f2e". A mark is too
// short to find out a secret value by trying. Values with equal marks look unchanged in SettingsChanges.
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

// SettingsChanges returns the names of the settings that differ between two results of ReadProject. It returns nil if an
// older version of ductor read the first ones, without marks.
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

// settingValues returns the values of all settings by name, and the names in order. The values of variables in .env
// files are marks. marked is false if such a file has none.
func settingValues(fields []Field) (values map[string]string, order []string, marked bool) {
	values = map[string]string{}
	add := func(name, value string) {
		if _, again := values[name]; !again {
			order = append(order, name)
		}
		values[name] += "\n" + value
	}
	without := map[string]bool{} // .env files whose marks have not come yet
	for _, f := range fields {
		file, _, _ := strings.Cut(f.Name, ": ")
		switch {
		case f.Weight == LabelField && strings.HasSuffix(f.Name, envMarksSuffix):
			delete(without, file)
			for mark := range strings.FieldsSeq(f.Value) {
				name, value, _ := strings.Cut(mark, "=")
				add(file+": "+name, value)
			}
		case f.Weight == LabelField:
		case strings.HasSuffix(file, ".env"):
			without[file] = true
		default:
			add(f.Name, f.Value)
		}
	}
	return values, order, len(without) == 0
}
