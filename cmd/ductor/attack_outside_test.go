package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/mcp/relay"
)

// An agent that found the token of an MCP client cannot use it: not from its shell, and not from a process that left
// its parent, its session and its environment. The agent's own token does not open a conversation outside of turns.
func TestAttackAnAgentActsAsAnMCPClientOutside(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	work, state := town.cfg.Projects.DefaultDir, town.cfg.Storage.Dir
	call := fmt.Sprintf("%s=%s %s=%s %s send pwned", relay.TokenVar, town.grant("desktop"), relay.DirVar, state,
		clitest.Program(t))
	script := filepath.Join(work, "attack.sh")
	text := fmt.Sprintf("%[1]s > shell.part 2>&1; mv shell.part shell\n"+
		"(env -i setsid sh -c '%[1]s > daemon.part 2>&1; mv daemon.part daemon' &)\n", call)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	town.say(`[[tool cmd="sh attack.sh"]] [[text "that was all"]]`)
	for _, from := range []string{"shell", "daemon"} {
		awaitFile(t, filepath.Join(work, from))
		if said, err := os.ReadFile(filepath.Join(work, from)); err != nil ||
			!strings.Contains(string(said), "an agent of ductor started this program") {
			t.Errorf("the %s gets %q, %v", from, said, err)
		}
	}
	town.awaitDone(1)
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "pwned") && !strings.Contains(m.Text, "attack.sh") {
			t.Errorf("the chat shows %q", m.Text)
		}
	}
}
