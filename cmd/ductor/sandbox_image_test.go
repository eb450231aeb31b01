package main

import (
	"testing"

	"github.com/google/uuid"

	"ductor/docker/dockertest"
	"ductor/internal/config"
)

// namedImage has a configuration's projects in containers of an image with a name, of which there is Claude alone. build makes
// the image anew, with more steps.
func namedImage(t testing.TB, c *config.Config) (build func(steps string)) {
	t.Helper()
	host := engineHost(t)
	name := "ductor-test-" + uuid.NewString()
	boxes(t, host, c)
	box := &c.Sandbox.SandboxSetting
	box.Image, box.BuildDir, box.BuildNetwork, box.Pull = name, "", "", false
	a := &c.Agents
	a.Codex.Enabled, a.Gemini.Enabled, a.Copilot.Enabled = false, false, false
	return func(steps string) { dockertest.Build(t, host, name, steps) }
}

// The agent that an image lacked answers once the image was mended, also if ductor was started in between.
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
