package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAgentsOfTheCatalogue tests that the catalogue sets the defaults of the agents that it knows, that a file
// overrides each value, and that another program gets none of them.
func TestAgentsOfTheCatalogue(t *testing.T) {
	for table, want := range map[string]string{
		"[agents.acp.opencode]\n":                                  "opencode [acp] []",
		"[agents.acp.opencode]\nargs = []\n":                       "opencode [] []",
		"[agents.acp.opencode]\nargs = [\"acp\", \"--pure\"]\n":    "opencode [acp --pure] []",
		"[agents.acp.opencode]\npath = \"/opt/bin/opencode\"\n":    "/opt/bin/opencode [acp] []",
		"[agents.acp.opencode]\npath = \"/opt/bin/other\"\n":       "/opt/bin/other [] []",
		"[agents.acp.auggie]\n":                                    "auggie [--acp] [AUGMENT_SESSION_AUTH]",
		"[agents.acp.droid]\nenv = [\"X\"]\n":                      "droid [exec --output-format acp-daemon] [X]",
		"[agents.acp.mine]\npath = \"mine\"\nargs = [\"serve\"]\n": "mine [serve] []",
		"[agents.acp.mine]\npath = \"opencode\"\n":                 "opencode [] []",
	} {
		_, c, found := decode([]byte(table))
		for _, s := range c.Agents.ACP {
			if got := fmt.Sprint(s.Path, " ", s.Args, " ", s.Env); got != want || len(found) > 0 || !s.Enabled {
				t.Errorf("%s is %s, %v, want %s", table, got, found, want)
			}
		}
	}
}

func TestAddableAgents(t *testing.T) {
	look := func(program string) (string, error) {
		if slices.Contains([]string{"opencode", "goose", "kilo"}, program) {
			return "/bin/" + program, nil
		}
		return "", errors.New("none")
	}
	_, c, _ := decode([]byte("[agents.acp.goose]\nenabled = false\n[agents.acp.mine]\npath = \"/opt/kilo\"\n"))
	all := c.Agents.Addable(look)
	if len(all) != 1 || all[0].ID != "opencode" {
		t.Fatalf("addable are %v", all)
	}
	if more := c.Agents.With(all[0]); len(more.Addable(look)) != 0 || len(more.ACP) != 3 || len(c.Agents.ACP) != 2 {
		t.Errorf("with it there are %v", more.ACP)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	for _, text := range []string{"[agents]\nacp = {}\n", "[telegram\n", ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := AddAgent(path, all[0].ID, Environment{Getenv: func(string) string { return "" }})
		if b, _ := os.ReadFile(path); err == nil || string(b) != text {
			t.Errorf("%q became %q, %v", text, b, err)
		}
	}
}
