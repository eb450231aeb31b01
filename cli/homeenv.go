package cli

import (
	"slices"
	"strings"
)

// AtHome is env for a process whose HOME is home: without the variables that lead back to another home, whoever
// allowed them, and without those that leads names besides (names or NAME_* patterns, the dialect's own). With an
// empty home env stays as it is.
func AtHome(env []string, home string, leads ...string) []string {
	if home == "" {
		return env
	}
	leads = append([]string{"HOME", "XDG_*", "GIT_CONFIG_GLOBAL", "ZDOTDIR"}, leads...)
	own := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return named(leads, name)
	})
	own = append(own, "HOME="+home)
	slices.Sort(own)
	return own
}

// Variable is the value of a variable in an environment, the last one counting as in a process; empty where there is
// none.
func Variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value
		}
	}
	return ""
}

// PickEnv keeps the lines of an .env file that set variables of names, which are names or NAME_* patterns. A value
// that goes on in another line is not kept whole.
func PickEnv(file []byte, names ...string) []byte {
	var out strings.Builder
	for line := range strings.Lines(string(file)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok && named(names, strings.TrimSpace(name)) {
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return []byte(out.String())
}
