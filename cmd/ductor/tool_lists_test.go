package main

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// permissions.allowed_tools allows commands with every agent, even one without such a list, and nothing else: edits
// still ask, and a plan changes nothing.
func TestAllowedToolsCountForEveryAgent(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				onlyAgent(c, agent)
				c.Permissions.Mode, c.Permissions.AllowedTools = "ask", []string{"shell"}
			})
			made, planned := filepath.Join(town.cfg.Projects.DefaultDir, "made"),
				filepath.Join(town.cfg.Projects.DefaultDir, "planned")
			town.say(`[[start]] [[ask cmd="touch %s"]] [[text "after the command"]]`, made)
			town.await("after the command")
			if _, err := os.Stat(made); err != nil {
				t.Errorf("an allowed command was not run: %v", err)
			}
			town.say("/permissions plan")
			town.await("plan: ")
			town.say(`[[start]] [[ask cmd="touch %s"]] [[text "in the plan"]]`, planned)
			town.awaitPlanned()
			if _, err := os.Stat(planned); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a plan ran a command: %v", err)
			}
		})
	}
}

// onlyAgent disables all agents of a configuration but one.
func onlyAgent(c *config.Config, agent string) {
	a := &c.Agents
	a.Default, a.Fallback = cli.Agent(agent), nil
	a.Claude.Enabled, a.Codex.Enabled, a.Gemini.Enabled, a.Copilot.Enabled = agent == "claude", agent == "codex", agent == "gemini", agent == "copilot"
}

// awaitPlanned waits for the end of a turn in plan mode, and denies its requests.
func (town *town) awaitPlanned() {
	m := &modeTown{town: town, turns: 2, denied: map[telegram.MessageID]bool{}}
	for m.denyNext() {
	}
}

// An unknown name is an error at the start and in `ductor doctor`, with its line and key. So is a rule about a tool
// in a list of the only tools, which would leave an agent no tools.
func TestAListOfToolsThatMeansNothingIsAnError(t *testing.T) {
	town := surroundings(t, nil)
	for list, want := range map[string]string{
		`denied_tools = ["Bsh"]`:    `permissions.denied_tools: no agent has a tool "Bsh"; did you mean "Bash"?`,
		`allowed_tools = ["Shell"]`: `permissions.allowed_tools: write "shell" in small letters`,
	} {
		path := town.userConfig("[permissions]\n", "[permissions]\n"+list+"\n")
		for _, command := range []string{"run", "doctor"} {
			code, stdout, stderr := runDuctor(t, command, "-c", path)
			if said := stdout + stderr; code == exitOK || !strings.Contains(said, want) ||
				!strings.Contains(said, filepath.Base(path)+":") {
				t.Errorf("%s with %s exits %d and says %s", command, list, code, said)
			}
		}
	}
	path := town.userConfig("[permissions]\n",
		"[roles.calm]\nprompt = \"calm\"\ntools = [\"Bash(ls)\"]\n[permissions]\n")
	if code, stdout, stderr := runDuctor(t, "doctor", "-c", path); code == exitOK ||
		!strings.Contains(stdout+stderr, "roles.calm.tools: \"Bash(ls)\" is a rule") {
		t.Errorf("doctor exits %d and says %s%s", code, stdout, stderr)
	}
}

// A rule that can never match is no error, because an older configuration may contain it. The log at the start and
// `ductor doctor` name it and what to write instead.
func TestAnAllowedToolThatLetsNothingThroughIsNamed(t *testing.T) {
	town := surroundings(t, nil)
	path := town.userConfig("[permissions]\n",
		"[roles.calm]\nprompt = \"calm\"\nallowed_tools = [\"Bash(*)\"]\n"+
			"[permissions]\nallowed_tools = [\"Read(~/notes/**)\", \"shell\"]\n")
	_, stdout, stderr := runDuctor(t, "doctor", "-c", path)
	for _, want := range []string{
		`permissions.allowed_tools: "Read(~/notes/**)" lets nothing through`,
		`write a path below the agent's folder, such as "Read(./src/**)"`,
		`roles.calm.allowed_tools: "Bash(*)" lets nothing through`, `write "Bash"`,
	} {
		if strings.Count(stdout+stderr, want) != 1 {
			t.Errorf("doctor does not say %s: %s%s", want, stdout, stderr)
		}
	}
	if strings.Contains(stdout, `"shell" lets`) {
		t.Errorf("doctor doubts a good entry: %s", stdout)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := app.Build(t.Context(), cfg, app.Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Scrub: tgapi.NewScrubber(town.srv.Token()),
		Runner: clitest.Runner(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Close() // after this, nothing writes to the log
	if n := strings.Count(log.String(), "lets nothing through"); n != 2 || !strings.Contains(log.String(), "fix=") {
		t.Errorf("%d entries are in the log: %s", n, log.String())
	}
}
