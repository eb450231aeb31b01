package main

import (
	"os"
	"path/filepath"
	"testing"

	"ductor/docker/dockertest"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// A sandbox fails during a turn. The chat says what happened and what helps, the next turn works as soon as possible,
// and nothing runs on this machine instead.
func TestTroubleOfASandboxInMidTurn(t *testing.T) {
	realagent.LongOnly(t)
	e := dockertest.Start(t, dockertest.Options{Disk: 400 << 20, Args: []string{"--shutdown-timeout", "5"}})
	onlyCanaries(t)
	p := newSandboxedProjects(t, e, "paused", "removed", "stopped", "memory", "image", "engine", "late")
	t.Run("one sandbox", func(t *testing.T) {
		for name, trouble := range map[string]func(*cell){
			"paused": paused, "removed": removed, "stopped": stopped, "memory": outOfMemory, "image": imageMissing,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				trouble(p.cells[name].in(t))
			})
		}
	})
	_ = t.Run("disk full", func(t *testing.T) { diskFull(p.cells["engine"].in(t), p.cells["late"].in(t)) }) &&
		t.Run("engine stopped", func(t *testing.T) { engineStopped(p.cells["engine"].in(t), e) }) &&
		t.Run("engine restarted", func(t *testing.T) { engineRestarted(p.cells["engine"].in(t), e) })
}

type prison struct {
	*town
	cells map[string]*cell
}

// newSandboxedProjects creates a project for each name, in its own container, with its own user.
func newSandboxedProjects(t *testing.T, e *dockertest.Engine, names ...string) *prison {
	t.Helper()
	p := &prison{cells: map[string]*cell{}}
	p.town = boxedTown(t, func(c *config.Config) {
		c.Agents.MaxLive = 2 * len(names)
		c.Sandbox.Host = e.Host()
		c.Sandbox.Projects = map[string]config.SandboxProject{}
		for i, name := range names {
			one := config.SandboxProject{Dir: t.TempDir(), Settings: c.Sandbox.Settings}
			switch name {
			case "memory":
				one.MemoryMB = 96
			case "image":
				one.Image, one.BuildDir, one.Pull = "agents:1", "", false
			}
			c.Sandbox.Projects[name] = one
			c.Projects.Roots = append(c.Projects.Roots, one.Dir)
			c.Telegram.AllowedUsers = append(c.Telegram.AllowedUsers, int64(100+i))
		}
	})
	e.Docker("build", "--quiet", "--network", "none", "--tag", "agents:1", p.cfg.Sandbox.BuildDir)
	p.start()
	for i, name := range names {
		town := *p.town
		town.chat = p.srv.Private(telegram.UserID(100+i), name)
		c := &cell{&seat{town: &town, dir: p.cfg.Sandbox.Projects[name].Dir}, name, e.Host()}
		p.cells[name] = c
		if name != "late" {
			c.enter()
		}
	}
	return p
}

// enter selects the project's directory, which opens its sandbox before the first message.
func (c *cell) enter() {
	c.t.Helper()
	c.say("/cwd %s", c.dir)
	c.await(c.dir)
}

// inMidTurn starts a turn that does not end on its own.
func (c *cell) inMidTurn() {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, "ready")); err != nil {
		c.t.Fatal(err)
	}
	c.ask(`[[start]] [[text "in mid-turn "]] [[tool cmd="touch ready"]] [[hang]]`)
	awaitFile(c.t, filepath.Join(c.dir, "ready"))
}

func paused(c *cell) {
	c.inMidTurn()
	dockertest.Pause(c.t, c.host, c.container())
	c.awaitRefusal("the sandbox's container was paused", "your next message resumes it")
	c.runTurn()
}

// removed is the check after the container was removed: Docker briefly reports it as stopped.
func removed(c *cell) {
	c.inMidTurn()
	c.engine("rm", "-f", c.container())
	c.awaitRefusal("the sandbox's container was ")
	c.runTurn()
}

// stopped is the check after the container was stopped: another request may start it again before the turn looks for
// it.
func stopped(c *cell) {
	c.inMidTurn()
	c.engine("kill", c.container())
	c.awaitRefusal("the sandbox's container was stopped", "your next message starts it")
	c.runTurn()
}

func outOfMemory(c *cell) {
	c.runTurn()
	c.ask(`[[start]] [[text "it takes too much "]] [[longline bytes=300000000]]`)
	c.answeredBy("there was too little memory for it; free some, or give its sandbox more")
	c.runTurn()
	c.ask(`[[start]] [[tool cmd="tail /dev/zero; echo it ended with $? >tail"]] [[text "and I go on"]]`)
	c.answeredBy("and I go on")
	if got := c.readFile("tail"); got != "it ended with 137" {
		c.t.Errorf("what it started %s", got)
	}
	c.runTurn()
}

func imageMissing(c *cell) {
	c.inMidTurn()
	id := c.engine("image", "inspect", "--format", "{{.Id}}", "agents:1")
	c.engine("rmi", "-f", "agents:1")
	c.engine("rm", "-f", c.container())
	c.awaitRefusal("the sandbox's container was ")
	c.ask("and now?")
	c.awaitRefusal("has no image agents:1", "docker pull agents:1")
	c.engine("tag", id, "agents:1")
	c.runTurn()
}

func diskFull(c, late *cell) {
	c.runTurn()
	c.ask(
		`[[start]] [[tool cmd="cat /dev/zero >~/big; touch ready; until [ -e go ]; do sleep 0.05; done"]] [[text "that was all "]] [[text n=50 size=100]]`)
	awaitFile(c.t, filepath.Join(c.dir, "ready"))
	late.enter()
	late.ask("and here?")
	late.awaitRefusal("the disk of the sandbox is full", "free some space there")
	c.createFile("go")
	c.answeredBy("that was all")
	c.awaitAnswered()
	c.ask(`[[start]] and now? [[text "the next works too"]]`)
	c.answeredBy("the next works too")
	c.engine("exec", c.container(), "/bin/rm", "/ductor/home/big")
	c.runTurn()
	late.runTurn()
}

func engineStopped(c *cell, e *dockertest.Engine) {
	c.inMidTurn()
	e.Stop()
	c.awaitRefusal("The sandbox engine of Claude is missing")
	c.ask("and now?")
	c.awaitRefusal("cannot be reached", "start it")
	e.Start()
	c.runTurn()
}

func engineRestarted(c *cell, e *dockertest.Engine) {
	c.inMidTurn()
	e.Stop()
	e.Start()
	c.awaitRefusal("The sandbox engine of Claude is missing")
	c.runTurn()
}
