package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ductor/docker/dockertest"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// boxed puts all agents of a configuration into containers of an image that needs no network. On this machine it
// installs only canaries.
func boxed(t *testing.T, c *config.Config) {
	t.Helper()
	a := &c.Agents
	a.Claude.Path, a.Codex.Path, a.Gemini.Enabled, a.Copilot.Enabled = "", "", false, false
	a.Grace = time.Second
	c.Permissions.Mode = "bypass"
	box := &c.Sandbox
	box.Mode, box.BuildDir, box.BuildNetwork, box.Network = orchestrator.SandboxDocker, dockertest.ImageDir(t), "none", "none"
	box.Runner = dockertest.Tool(t, dockertest.Runner)
}

// deafTree starts three nested processes in separate sessions that ignore all signals.
const deafTree = `#!/bin/sh
trap '' TERM HUP INT QUIT
[ "$1" -gt 1 ] && setsid sh ./deaf.sh $(($1-1)) "$2" &
touch deaf-$1
while :; do sleep 1; done
`

// cell is a seat whose project is in a container.
type cell struct {
	*seat
	sandbox string // its name
	host    string // of the engine
}

// engine runs docker's own program where the container is.
func (c *cell) engine(args ...string) string {
	c.t.Helper()
	return dockertest.On(c.t, c.host, args...)
}

// startDeaf makes the agent, which ignores signals too, run deafTree in its container, and waits for the innermost
// process. The processes have the returned mark in their command lines.
func (c *cell) startDeaf() (mark string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "deaf.sh"), []byte(deafTree), 0o644); err != nil {
		c.t.Fatal(err)
	}
	mark = "mark-" + uuid.NewString()
	c.ask(`[[start]] [[text "It begins. "]] [[ignore-term]] [[tool cmd="sh ./deaf.sh 3 %s"]]`, mark)
	awaitFile(c.t, filepath.Join(c.dir, "deaf-1"))
	if here := marked(c.t, mark); len(here) < 3 {
		c.t.Fatalf("of the deaf tree there is %q", here)
	}
	if inside := strings.Count(c.inside(), mark); inside < 3 {
		c.t.Fatalf("of the deaf tree there are %d in the container", inside)
	}
	return mark
}

// container returns the name of the container of the seat's project.
func (c *cell) container() string {
	c.t.Helper()
	name := c.containers()
	if name == "" || strings.Contains(name, "\n") {
		c.t.Fatalf("the containers of %s are %q", c.dir, name)
	}
	return name
}

// containers returns the names of the sandbox's containers, one per line.
func (c *cell) containers() string {
	c.t.Helper()
	return c.engine("ps", "-a", "--filter", "label=ductor.name="+c.sandbox, "--filter", "volume="+c.dir, "--format",
		"{{.Names}}")
}

// inside returns the processes in the container.
func (c *cell) inside() string {
	c.t.Helper()
	return c.engine("top", c.container(), "-eo", "pid,args")
}

// marked returns the processes on this machine, including those in containers, with a mark in their command lines.
func marked(t testing.TB, mark string) (left []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), mark) {
			left = append(left, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return left
}

// awaitNothingLeft waits until no process with a mark is left on this machine or in the container.
func (c *cell) awaitNothingLeft(mark string) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := marked(c.t, mark)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("still alive after %s: %q", patience, left)
		}
	}
	if inside := c.inside(); strings.Contains(inside, mark) {
		c.t.Errorf("in the container there is still\n%s", inside)
	}
}

// sandboxed returns the settings of boxed in the form of a configuration file.
func sandboxed(c config.Config) string {
	box := c.Sandbox
	return fmt.Sprintf(`grace = %q
[sandbox]
mode = %q
image = %q
pull = %v
build_dir = %q
build_network = %q
network = %q
runner = %q
`, c.Agents.Grace, box.Mode, box.Image, box.Pull, box.BuildDir, box.BuildNetwork, box.Network, box.Runner)
}

// in returns the same cell for a subtest.
func (c *cell) in(t testing.TB) *cell {
	town, seat := *c.town, *c.seat
	town.t, seat.town = t, &town
	return &cell{&seat, c.sandbox, c.host}
}

// answeredBy waits for a message with these words after the last prompt.
func (c *cell) answeredBy(words string) telegram.Message {
	c.t.Helper()
	m, err := c.chat.AwaitMessage(c.soon(), func(m telegram.Message) bool {
		return m.ID > c.asked.ID && strings.Contains(m.Text, words)
	})
	if err != nil {
		c.t.Fatalf("%v\n%s", err, said(c.chat.View()))
	}
	return m
}

// runTurn runs a turn successfully in the container.
func (c *cell) runTurn() {
	c.t.Helper()
	word := "fine-" + uuid.NewString()
	c.ask(`and now? [[start]] [[tool cmd="hostname >where; cat where"]] [[text "%s"]]`, word)
	c.answeredBy(word)
	where, is := c.readFile("where"), c.engine("inspect", "--format", "{{.Id}} {{.State.Status}}", c.container())
	if where == "" || !strings.HasPrefix(is, where) || !strings.HasSuffix(is, " running") {
		c.t.Errorf("it ran on %q, and the container is %s", where, is)
	}
}

// boxedTown returns a town whose agents are in containers, which are removed with it. The caller starts it.
func boxedTown(t *testing.T, change func(*config.Config)) *town {
	t.Helper()
	town := surroundings(t, func(c *config.Config) {
		boxed(t, c)
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(func() { wipeSandboxes(t, town.cfg) })
	return town
}

// onlyCanaries puts agents on PATH that record their use.
func onlyCanaries(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", canaries(t)+":"+os.Getenv("PATH"))
}

// cell returns the cell for the project of all chats of a town.
func (town *town) cell(host string) *cell {
	return &cell{&seat{town: town, dir: town.cfg.Projects.DefaultDir}, config.DefaultSandbox, host}
}
