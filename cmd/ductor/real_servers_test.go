package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// An MCP server of the owner's that hangs at its start is named in the card of the turn that goes on without it.
func TestRealClaudeNamesAServerThatHangs(t *testing.T) {
	town, _ := realSurroundings(t, "claude", nil)
	hangs := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"mcpServers":{"slowpoke":{"type":"stdio","command":%q,"args":[]}}}`, hangs)
	if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), ".claude.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	town.start()
	town.say(`[[text "It goes on."]]`)
	town.await("MCP server slowpoke does not answer")
	town.await("It goes on.")
}
