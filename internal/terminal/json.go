package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// jsonHooks are the hooks of a CLI whose settings are JSON. For each event, the settings contain a list of groups, and
// each group contains a list of commands.
type jsonHooks struct {
	agent  string
	events []event
}

// event is an event of a CLI for which ductor adds a hook. The unit of the timeout depends on the CLI.
type event struct {
	name    string
	timeout int
}

var errNotJSON = errors.New("it is not a JSON object")

func (j jsonHooks) addHooks(text []byte, m Machine) ([]byte, bool, error) {
	bare, had, err := j.removeOurs(text, "")
	if err != nil {
		return nil, false, err
	}
	hooks, err := parseObject(bare.get("hooks"))
	if err != nil {
		return nil, false, fmt.Errorf("hooks: %w", err)
	}
	for _, e := range j.events {
		var groups []json.RawMessage
		if raw := hooks.get(e.name); raw != nil {
			if err := json.Unmarshal(raw, &groups); err != nil {
				return nil, false, fmt.Errorf("hooks.%s is no list", e.name)
			}
		}
		own, err := marshal(map[string]any{"hooks": []any{map[string]any{"type": "command",
			"command": m.shellCommand(j.agent), "timeout": e.timeout}}})
		if err == nil {
			err = hooks.set(e.name, append(groups, own))
		}
		if err != nil {
			return nil, false, err
		}
	}
	if err := bare.set("hooks", hooks); err != nil {
		return nil, false, err
	}
	next, err := bare.encode(text)
	return next, had, err
}

func (j jsonHooks) removeHooks(text []byte, m Machine) ([]byte, bool, error) {
	bare, had, err := j.removeOurs(text, m.State)
	if err != nil || !had {
		return text, false, err
	}
	next, err := bare.encode(text)
	return next, true, err
}

// removeOurs parses settings and removes the hooks of the ductor with the given state directory, or of any ductor if
// state is empty. If a list becomes empty, removeOurs also removes the list.
func (j jsonHooks) removeOurs(text []byte, state string) (all object, had bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, false, nil
	}
	if all, err = parseObject(text); err != nil {
		return nil, false, err
	}
	hooks, err := parseObject(all.get("hooks"))
	if err != nil {
		return nil, false, fmt.Errorf("hooks: %w", err)
	}
	for _, m := range slices.Clone(hooks) {
		var groups []json.RawMessage
		if json.Unmarshal(m.value, &groups) != nil {
			continue // ductor did not write this value, so do not change it
		}
		ours := func(group json.RawMessage) bool { return isOurs(group, state) }
		kept := slices.DeleteFunc(slices.Clone(groups), ours)
		if len(kept) == len(groups) {
			continue
		}
		had = true
		if err := hooks.set(m.key, kept); err != nil {
			return nil, false, err
		}
		if len(kept) == 0 {
			hooks.drop(m.key)
		}
	}
	switch {
	case !had:
	case len(hooks) == 0:
		all.drop("hooks")
	default:
		err = all.set("hooks", hooks)
	}
	return all, had, err
}

// isOurs reports whether the ductor with the given state directory has added this group of hooks. If state is empty, it
// accepts any ductor.
func isOurs(group json.RawMessage, state string) bool {
	var g struct {
		Hooks []struct {
			Command string `json:"command"`
		} `json:"hooks"`
	}
	flag := " " + StateFlag + " "
	if state != "" {
		flag += shellWord(state) + " "
	}
	return json.Unmarshal(group, &g) == nil && len(g.Hooks) == 1 &&
		strings.Contains(g.Hooks[0].Command, " "+Verb+" ") &&
		strings.Contains(g.Hooks[0].Command+" ", flag)
}

// object is a JSON object that preserves the order of its keys.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseObject parses an object. It returns an empty object for nil.
func parseObject(text []byte) (o object, err error) {
	if text == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNotJSON
	}
	for d.More() {
		var m member
		t, err := d.Token()
		key, is := t.(string)
		if err != nil || !is || d.Decode(&m.value) != nil {
			return nil, errNotJSON
		}
		m.key = key
		o = append(o, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, errNotJSON
	}
	if _, err := d.Token(); err == nil {
		return nil, errNotJSON
	}
	return o, nil
}

func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// set replaces the value of a key, or appends the key.
func (o *object) set(key string, value any) error {
	raw, err := marshal(value)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(*o, func(m member) bool { return m.key == key }); i >= 0 {
		(*o)[i].value = raw
		return nil
	}
	*o = append(*o, member{key, raw})
	return nil
}

func (o *object) drop(key string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.key == key })
}

// MarshalJSON encodes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		key, err := marshal(m.key)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(append(append(key, ':'), m.value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode encodes the object. It uses the indentation in the second line of the previous text, or two spaces.
func (o object) encode(before []byte) ([]byte, error) {
	raw, err := marshal(o)
	if err != nil {
		return nil, err
	}
	indent := "  "
	if _, rest, found := bytes.Cut(before, []byte("\n")); found {
		if white := rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))]; len(white) > 0 {
			indent = string(white)
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", indent); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

// marshal encodes JSON without escaping characters for HTML.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
