package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ductor/docker/dockertest"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// namedImage puts the projects of a configuration into containers of a named image that contains only Claude. build
// builds the image again, with more steps.
func namedImage(t testing.TB, c *config.Config) (build func(steps string)) {
	t.Helper()
	host := engineHost(t)
	name := "ductor-test-" + uuid.NewString()
	boxes(t, host, c)
	box := &c.Sandbox.Settings
	box.Image, box.BuildDir, box.BuildNetwork, box.Pull = name, "", "", false
	a := &c.Agents
	a.Codex.Enabled, a.Gemini.Enabled, a.Copilot.Enabled = false, false, false
	return func(steps string) { dockertest.Build(t, host, name, steps) }
}

// When an agent was missing in an image and the image is fixed, the agent answers, also if ductor was started in
// between.
func TestAMendedImageHasItsAgent(t *testing.T) {
	var build func(string)
	town := surroundings(t, func(c *config.Config) { build = namedImage(t, c) })
	build("RUN rm /usr/local/bin/claude\n")
	town.start()
	town.say(`[[text "not yet"]]`)
	town.await("Claude is missing from the image of the sandbox default")
	build("")
	town.stop()
	town.start()
	town.say(`[[text "It is mended."]]`)
	town.await("It is mended.")
}

// In an image without a directory for temporary files, ductor creates one that the agents' user may write.
func TestAnImageWithoutTemporaryFiles(t *testing.T) {
	var build func(string)
	town := surroundings(t, func(c *config.Config) {
		build = namedImage(t, c)
		c.Sandbox.User = "1234:1234"
	})
	build("RUN rm -r /tmp\n")
	town.start()
	town.say(`[[tool cmd="echo $TMPDIR; echo there >/tmp/made; cat /tmp/made"]] [[text "That was it."]]`)
	if m := town.await("That was it."); !strings.Contains(m.Text, "✓") {
		t.Errorf("it says %q", m.Text)
	}
}

// doctorOf returns doctor's findings about a town's sandbox and its agent.
func (town *town) doctorOf(check string) string {
	town.t.Helper()
	_, stdout, stderr := runDuctor(town.t, "doctor", "-c", town.writeConfig())
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, " "+check+": ") {
			return line
		}
	}
	town.t.Fatalf("the doctor says nothing of %s:\n%s%s", check, stdout, stderr)
	return ""
}

// doctor reports an agent in a sandbox as ok only if it starts there.
func TestTheDoctorStartsTheAgentOfASandbox(t *testing.T) {
	var build func(string)
	town := surroundings(t, func(c *config.Config) { build = namedImage(t, c) })
	town.extra = sandboxed(town.cfg)
	build("RUN printf '#!/bin/env node' >/usr/local/bin/claude\n")
	const check = "sandbox default, agent claude"
	if line := town.doctorOf(check); !strings.HasPrefix(line, "warn") || !strings.Contains(line, "does not run") ||
		!strings.Contains(line, "node") {
		t.Errorf("of an agent that cannot run it says %q", line)
	}
	build("")
	if line := town.doctorOf(check); !strings.HasPrefix(line, "ok") {
		t.Errorf("mended it says %q", line)
	}
}

// If an image cannot be built, the chat says why and what helps, and doctor says the same.
func TestAnImageThatCannotBeBuilt(t *testing.T) {
	town := surroundings(t, func(c *config.Config) {
		boxes(t, engineHost(t), c)
		c.Sandbox.BuildDir = t.TempDir()
		dockertest.Write(t, filepath.Join(c.Sandbox.BuildDir, "Dockerfile"), "FROM 127.0.0.1:9/nothing:1\n", 0o644)
	})
	town.extra = sandboxed(town.cfg)
	if line := town.doctorOf("sandbox default"); !strings.HasPrefix(line, "warn") ||
		!strings.Contains(line, "to be built") {
		t.Errorf("before it was tried it says %q", line)
	}
	town.start()
	town.say("and now?")
	const why, helps = "could not build the image of Dockerfile: it does not reach 127.0.0.1:9 (connection refused)",
		"reaches the network"
	if m := town.await("is missing"); !strings.Contains(m.Text, why) || !strings.Contains(m.Text, helps) {
		t.Errorf("the chat says %q", m.Text)
	}
	if line := town.doctorOf("sandbox default"); !strings.HasPrefix(line, "FAIL") || !strings.Contains(line, why) ||
		!strings.Contains(line, helps) {
		t.Errorf("the doctor says %q", line)
	}
}

// The copies of users' files are deleted with their container, also if it was removed by hand.
func TestAContainerRemovedByHandLeavesNoFiles(t *testing.T) {
	host := engineHost(t)
	town := newTown(t, func(c *config.Config) { boxes(t, host, c) })
	c := town.cell(host)
	left := func() string {
		return c.engine("volume", "ls", "--quiet", "--filter", "label=ductor.owner="+environment.Owner(town.cfg),
			"--filter", "label=ductor.use=shared", "--filter", "dangling=true")
	}
	town.chat.Person().SendDocument(town.chat,
		telegram.File{Name: "notes.txt", MIME: "text/plain", Data: []byte("forty-two")},
		telegram.WithCaption(`[[text "It is there."]]`))
	town.await("It is there.")
	c.engine("rm", "--force", c.container())
	if left() == "" {
		t.Fatal("the engine leaves nothing, and the test proves nothing")
	}
	c.runTurn()
	if volumes := left(); volumes != "" {
		t.Errorf("the next message leaves %s", volumes)
	}
	c.engine("rm", "--force", c.container())
	town.stop()
	town.start()
	eventually(t, "the volumes are gone", func() bool { return left() == "" })
}

// Copilot checks during a text whether its tool servers are available. In a sandbox, this check also waits for a
// ductor that restarts, and the answer contains no warning.
func TestARestartWarnsOfNoToolsInASandbox(t *testing.T) {
	realagent.LongOnly(t)
	const model = "127.0.0.1:8099"
	host := engineHost(t)
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		real := realagent.Copilot(t, "http://"+model)
		c.Agents.Claude.Enabled, c.Agents.Codex.Enabled, c.Agents.Gemini.Enabled = false, false, false
		c.Agents.Default, c.Agents.Copilot.Path = "copilot", real.Path
		c.Projects.DefaultDir, c.Projects.Roots = real.Work, []string{real.Work}
		c.Sandbox.PIDs = -1
		c.Sandbox.Mounts = []string{filepath.Dir(real.Path) + ":/opt/codex"}
		// Libraries of the program.
		for _, pattern := range []string{"/lib64", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/etc/ssl",
			"/usr/share/ca-certificates"} {
			found, _ := filepath.Glob(pattern)
			c.Sandbox.Mounts = append(c.Sandbox.Mounts, found...)
		}
		delete(real.Vars, "COPILOT_PKG_CACHE_HOME")
		real.Setenv(t)
	})
	c := town.cell(host)
	town.say("/model copilot") // creates the container
	town.await("Copilot")
	eventually(t, "the container", func() bool { return c.containers() != "" })
	c.engine("exec", "--detach", c.container(), "/usr/local/bin/model", model) // the model outlives ductor
	asked := town.say(`[[text n=80 size=20 delay=150ms]] [[text "The end."]]`)
	town.awaitMessage(func(m telegram.Message) bool { return m.ID > asked.ID && len(m.Text) > 60 })
	town.leave()
	time.Sleep(5 * time.Second) // it checks every few seconds
	town.start()
	if m := town.awaitAnswer("The end."); strings.Contains(m.Text, "⚠️") {
		t.Errorf("it says %q", m.Text)
	}
}
