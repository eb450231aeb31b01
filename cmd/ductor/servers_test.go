package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/toolserver"
	"ductor/mcp/servers"
)

const greetingKey = "a-secret-word-for-greetings"

// withServers configures the server greeter, a program of a kind of package toolserver, and web, with a URL. Both need
// the secret.
func withServers(t *testing.T, kind string) func(*config.Config) {
	t.Helper()
	t.Setenv("GREETING", greetingKey)
	web := httptest.NewServer(toolserver.Handler("Bearer " + greetingKey))
	t.Cleanup(web.Close)
	return func(c *config.Config) {
		c.MCP.Servers = map[string]servers.Settings{
			"greeter": {Command: os.Args[0], Args: []string{toolserver.Verb, kind},
				Env: []string{"GREETING"}, Timeout: time.Minute},
			"web": {URL: web.URL, Headers: []string{"Authorization: Bearer ${GREETING}"},
				Env: []string{"GREETING"}, Timeout: time.Minute},
		}
	}
}

// toolOf returns the name by which an agent's model calls the tool of a server.
func toolOf(agent, server string) string {
	tool := map[string]string{"greeter": "greet", "web": "greet_by_url"}[server]
	switch agent {
	case "claude":
		return "mcp__" + server + "__" + tool
	case "gemini":
		return "mcp_" + server + "_" + tool
	case "copilot":
		return server + "-" + tool
	case "opencode":
		return server + "_" + tool
	}
	return tool
}

// Real agents reach a configured program and a configured URL. Neither a command line nor the chat shows the
// secret. In ask, a user allows each call, although the program claims to change nothing.
func TestRealAgentsReachConfiguredServers(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range realagent.Some("claude", "codex", "gemini", "copilot", "opencode") {
		for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
			if mode == cli.OneShot && (agent == "opencode" || agent == "gemini") {
				continue // these speak ACP only, or have no flag for servers
			}
			t.Run(agent+" "+string(mode), func(t *testing.T) {
				kind := "claims"
				if agent == "copilot" { // it believes the claim
					kind = "serve"
				}
				asks := mode == cli.Live && agent != "opencode" // its own configuration decides
				with := withServers(t, kind)
				town, api := realTown(t, agent, func(c *config.Config) {
					with(c)
					c.Agents.Claude.Mode, c.Agents.Codex.Mode = mode, mode
					c.Agents.Gemini.Mode, c.Agents.Copilot.Mode = mode, mode
					if asks {
						c.Permissions.Mode = "ask"
					}
				})
				for i, server := range []string{"greeter", "web"} {
					town.say(`[[start]] [[call %s args="{\"name\":\"%s\"}"]] [[text "that was all"]]`,
						toolOf(agent, server), "Ann"+server)
					if asks {
						town.awaitButton("✅ Allow once")
						for _, line := range commandLines(t) {
							if strings.Contains(line, greetingKey) {
								t.Errorf("a command line shows the secret: %q", line)
							}
						}
						town.press("✅ Allow once")
					}
					done := town.awaitDone(i + 1)
					if !strings.Contains(api.Asked(), "good day Ann"+server) {
						t.Errorf("the model is not told the greeting of %s: %q", server, done.Text)
					}
				}
				for _, m := range town.chat.Messages() {
					if strings.Contains(m.Text, greetingKey) {
						t.Errorf("the chat shows the secret: %q", m.Text)
					}
				}
			})
		}
	}
}

// commandLines returns the command lines of all processes.
func commandLines(t *testing.T) (all []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if line, err := os.ReadFile(path); err == nil { // others have ended
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}
