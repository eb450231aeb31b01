package app

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/internal/keys"
)

// tokens contains the tokens that users gave to agents since the start of ductor. A nil tokens is empty.
type tokens struct {
	dir   string // directory of the stored keys
	scrub *tgapi.Scrubber

	mu     sync.Mutex
	values map[keys.Name]string
}

// try gives a token to an agent for a check; see side.Tokens.
func (t *tokens) try(agent cli.Agent, variable, token string) (undo func()) {
	t.scrub.Add(token)
	name := keys.Name{Agent: string(agent), Variable: variable}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := maps.Clone(t.values)
	if t.values == nil {
		t.values = map[keys.Name]string{}
	}
	t.values[name] = token
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.values, name); before[name] != "" {
			t.values[name] = before[name]
		}
	}
}

// keep stores a token like `ductor secret set`.
func (t *tokens) keep(agent cli.Agent, variable, token string) error {
	return keys.Set(t.dir, keys.Name{Agent: string(agent), Variable: variable}, strings.NewReader(token))
}

// environ returns the variables with the tokens of an agent.
func (t *tokens) environ(agent cli.Agent) (all []string) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, token := range t.values {
		if name.Agent == string(agent) {
			all = append(all, name.Variable+"="+token)
		}
	}
	return slices.Sorted(slices.Values(all))
}
