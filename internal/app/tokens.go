package app

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"ductor/bot/tgapi"
	"ductor/internal/keys"
)

// tokens contains the tokens that users have given to agents since ductor started. A nil *tokens is empty.
type tokens struct {
	dir   string // directory of the stored keys
	scrub *tgapi.Scrubber

	mu     sync.Mutex
	values map[keys.Name]string
}

// try makes agents use a token until undo restores the previous token. ductor calls it to check whether a token works;
// see side.Tokens.
func (t *tokens) try(of, variable, token string) (undo func()) {
	t.scrub.Add(token)
	name := keys.Name{Agent: of, Variable: variable}
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

// keep stores a token permanently, like the command `ductor secret set`.
func (t *tokens) keep(of, variable, token string) error {
	return keys.Set(t.dir, keys.Name{Agent: of, Variable: variable}, strings.NewReader(token))
}

// environ returns the environment entries with the tokens of an agent's account.
func (t *tokens) environ(of string) (all []string) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, token := range t.values {
		if name.Agent == of {
			all = append(all, name.Variable+"="+token)
		}
	}
	return slices.Sorted(slices.Values(all))
}
