package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/realagent"
)

// The card names an MCP server of the owner that hangs at its start. Claude waits for MCP_TIMEOUT, 30 seconds by
// default, Codex does not wait, and Copilot waits for a minute. Gemini waits too, but does not report it.
func TestRealAgentsNameAServerThatHangs(t *testing.T) {
	realagent.LongOnly(t)
	hangs := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"mcpServers":{"slowpoke":{"type":"stdio","command":%q,"args":[]}}}`, hangs)
	for agent, write := range map[string]func(t *testing.T, home string) error{
		"claude": func(_ *testing.T, home string) error {
			return os.WriteFile(filepath.Join(home, ".claude.json"), []byte(config), 0o600)
		},
		"codex": func(_ *testing.T, home string) error {
			path := filepath.Join(home, ".codex", "config.toml")
			before, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, fmt.Appendf(before, "\n[mcp_servers.slowpoke]\ncommand = %q\n", hangs), 0o600)
		},
		"copilot": func(_ *testing.T, home string) error {
			dir := filepath.Join(home, ".copilot")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "mcp-config.json"), []byte(config), 0o600)
		},
	} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realSurroundings(t, agent, nil)
			if err := write(t, os.Getenv("HOME")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("MCP_TIMEOUT", "3000")
			town.start()
			// Claude rejects a command that only sleeps.
			town.say(`[[start]] [[tool cmd="until [ -e go ]; do sleep 0.05; done"]] [[text "It goes on."]]`)
			if agent == "copilot" {
				town.await("⏳ waiting for MCP server slowpoke…")
				town.say("/abort")
				town.await("Aborted")
				return
			}
			town.await(map[string]string{"claude": "MCP server slowpoke could not be started",
				"codex": "MCP server slowpoke does not answer"}[agent])
			town.makeFile("go", nil)
			town.await("It goes on.")
		})
	}
}
