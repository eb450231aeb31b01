package presence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sessions returns a fake loginctl.
func sessions(all map[string]string) func(context.Context, ...string) (string, error) {
	return func(_ context.Context, args ...string) (string, error) {
		if args[0] == "show-user" {
			var ids []string
			for id := range all {
				ids = append(ids, id)
			}
			return strings.Join(ids, " ") + "\n", nil
		}
		if all[args[1]] == "" {
			return "", errors.New("no such session")
		}
		return strings.ReplaceAll(all[args[1]], " ", "\n") + "\n", nil
	}
}

func TestAway(t *testing.T) {
	const desk, locked = "Class=user State=active LockedHint=no IdleHint=no", "Class=user State=active LockedHint=yes IdleHint=no"
	const idle, manager = "Class=user State=online LockedHint=no IdleHint=yes", "Class=manager State=active LockedHint=no IdleHint=no"
	for name, tt := range map[string]struct {
		sessions map[string]string
		away     bool
	}{
		"at the desk":                    {map[string]string{"1": desk}, false},
		"the screen is locked":           {map[string]string{"1": locked}, true},
		"idle":                           {map[string]string{"1": idle}, true},
		"locked here, at work elsewhere": {map[string]string{"1": locked, "2": desk}, false},
		"all of them":                    {map[string]string{"1": locked, "2": idle}, true},
		"a manager is no user":           {map[string]string{"1": locked, "2": manager}, true},
		"a session that is closing":      {map[string]string{"1": locked, "2": "Class=user State=closing LockedHint=no IdleHint=no"}, true},
		"one that has just ended":        {map[string]string{"1": ""}, false},
		"no session":                     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Options{State: t.TempDir(), Ask: sessions(tt.sessions), UID: 1000})
			if got := p.Away(t.Context()); got != tt.away {
				t.Errorf("away: %v", got)
			}
		})
	}
	broken := New(Options{State: t.TempDir(), Ask: func(context.Context, ...string) (string, error) { return "", errors.New("no logind") }})
	if broken.Away(t.Context()) {
		t.Error("without logind the user is away")
	}
}

// The user's choice overrides logind, even after a restart, until the user chooses auto.
func TestTheUsersChoiceOverridesLogind(t *testing.T) {
	state := t.TempDir()
	ask := sessions(map[string]string{"1": "Class=user State=active LockedHint=no IdleHint=no"})
	for _, tt := range []struct {
		choice Choice
		away   bool
	}{{Away, true}, {Here, false}, {Away, true}, {Auto, false}, {Auto, false}} {
		if err := New(Options{State: state, Ask: ask}).Choose(tt.choice); err != nil {
			t.Fatal(err)
		}
		p := New(Options{State: state, Ask: ask})
		if got := p.Away(t.Context()); got != tt.away || p.Choice() != tt.choice {
			t.Errorf("%s: away %v, choice %s", tt.choice, got, p.Choice())
		}
	}
	if _, err := os.Stat(filepath.Join(state, choiceFile)); err == nil {
		t.Error("auto leaves a file")
	}
}
