package config

import (
	"errors"
	"testing"
)

func TestPlacesAreKnownInSpiteOfMistakesElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		known   bool
		sandbox string
	}{
		"a mistake elsewhere": {"[storage]\ndir = \"/srv/state\"\n[projects]\ndefault_dir = \"/etc\"\n" +
			"[sandbox]\nmode = \"docker\"\n", true, "docker"},
		"a mistake in the sandbox": {"[storage]\ndir = \"/srv/state\"\n" +
			"[sandbox]\nmode = \"docker\"\nimag = \"x\"\n", true, "off"},
		"a mistake in the storage": {"[storage]\ndir = \"state\"\n", false, ""},
		"a mistyped table":         {"[storag]\ndir = \"/srv/state\"\n", false, ""},
		"a mistyped key":           {"[storage]\ndirr = \"/srv/state\"\n", false, ""},
		"a key in another table":   {"uploads_max_mb = 3\n[storage]\ndir = \"/srv/state\"\n", false, ""},
		"not TOML":                 {"storage", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment(map[string]string{TokenVariable: token})
			_, err := build("config.toml", []byte(c.text), 0o600, env)
			var invalid *Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want *Invalid", err)
			}
			places, known := invalid.Places()
			if known != c.known {
				t.Fatalf("known %v, want %v", known, c.known)
			}
			if !known {
				return
			}
			if places.Storage.Dir != "/srv/state" || string(places.Sandbox.Mode) != c.sandbox {
				t.Errorf("the storage is in %q, the sandbox is %q", places.Storage.Dir, places.Sandbox.Mode)
			}
		})
	}
}
