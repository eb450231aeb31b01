package terminal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// notifyKey is a key in Codex's config.toml. Its value is a command line that Codex runs at the end of each turn.
// ductor sets it to ductor's hook. There can be only one such command, because Codex has no list of hooks.
const notifyKey = "notify"

var errNotTOML = errors.New("it is not valid TOML")

func addNotify(text []byte, m Machine) ([]byte, bool, error) {
	words, err := notifyOf(text)
	if err != nil {
		return nil, false, err
	}
	before, had := splitFormer(words)
	next := m.hookArgs("codex")
	if len(before) > 0 {
		next = append(append(next, ThenFlag), before...)
	}
	out, err := setNotify(text, next)
	return out, had, err
}

func removeNotify(text []byte, m Machine) ([]byte, bool, error) {
	words, err := notifyOf(text)
	if err != nil {
		return nil, false, err
	}
	before, had := splitFormer(words)
	if !had || m.State != "" && words[4] != m.State {
		return text, false, nil
	}
	out, err := setNotify(text, before)
	return out, true, err
}

// splitFormer splits the value of notify. It returns the user's former command line, without ductor's hook, and whether
// the value contains ductor's hook.
func splitFormer(words []string) (former []string, hooked bool) {
	if len(words) < 5 || words[1] != Verb || words[3] != StateFlag {
		return words, false
	}
	if len(words) > 6 && words[5] == ThenFlag {
		return words[6:], true
	}
	return nil, true
}

func notifyOf(text []byte) ([]string, error) {
	var all struct {
		Notify []string `toml:"notify"`
	}
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotTOML, err)
	}
	return all.Notify, nil
}

// setNotify sets the key notify to a command line. If words is empty, it removes the key. All other lines stay.
func setNotify(text []byte, words []string) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	at, end := notifyLines(lines)
	var line []string
	if len(words) > 0 {
		raw, err := toml.Marshal(map[string]any{notifyKey: words})
		if err != nil {
			return nil, err
		}
		line = []string{string(raw)}
	}
	next := []byte(strings.Join(slices.Concat(lines[:at], line, lines[end:]), ""))
	return next, checkOnlyNotify(text, next, words)
}

// notifyLines returns the range of lines that contain the key notify. If the key is missing, the range is empty and at
// the beginning of the file, because a top-level key must come before all tables.
func notifyLines(lines []string) (at, end int) {
	for i, line := range lines {
		name, _, found := strings.Cut(line, "=")
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			break
		}
		if !found || strings.TrimSpace(name) != notifyKey {
			continue
		}
		for end := i + 1; end <= len(lines); end++ {
			var part map[string]any
			if toml.Unmarshal([]byte(strings.Join(lines[i:end], "")), &part) == nil {
				return i, end
			}
		}
	}
	return 0, 0
}

// checkOnlyNotify returns an error if anything except notify has changed.
func checkOnlyNotify(before, after []byte, words []string) error {
	old, now := map[string]any{}, map[string]any{}
	err := errors.Join(toml.Unmarshal(before, &old), toml.Unmarshal(after, &now))
	got, _ := notifyOf(after)
	delete(old, notifyKey)
	delete(now, notifyKey)
	if err != nil || !reflect.DeepEqual(old, now) || !slices.Equal(got, words) {
		return errors.New("its notify stands there in a form that cannot be changed; set it by hand")
	}
	return nil
}
