package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"ductor/docker/dockertest"
	"ductor/internal/config"
	"ductor/internal/realagent"
)

// After any end of a turn in a sandbox, none of its processes is left in the container or on the engine's machine,
// even if they ignore all signals.
func TestNothingIsLeftOfAnEndedTurnInASandbox(t *testing.T) {
	dockertest.Need(t)
	onlyCanaries(t)
	const limit = 15 * time.Second
	endings := realagent.Some([]*ending{
		{name: "abort", says: "Aborted", end: func(c *cell) { c.say("/abort") }},
		{name: "too old", says: "took too long and was stopped", after: limit, set: func(a *config.Agents) {
			a.StaleAfter = limit
		}},
		{name: "out of time", says: "took too long and was stopped", after: limit, set: func(a *config.Agents) {
			a.TurnTimeout = limit
		}},
	}...)
	for _, e := range endings {
		town := boxedTown(t, func(c *config.Config) {
			if e.set != nil {
				e.set(&c.Agents)
			}
		})
		town.start()
		e.cell = town.cell(dockertest.Host())
	}
	o := mortalTown(t)
	endings = append(endings, &ending{name: "kill ductor, and abort", says: "Aborted", cell: o.cell(dockertest.Host()),
		end: func(c *cell) {
			o.daemon.kill()
			o.rise()
			c.say("/abort")
		}})
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.watch(e.cell.in(t))
		})
	}
}

// ending is a way in which a turn ends early.
type ending struct {
	name  string
	set   func(*config.Agents)
	cell  *cell
	end   func(*cell)   // nil if the turn ends on its own
	after time.Duration // time after which it ends on its own
	says  string        // text in the chat
}

func (e *ending) watch(c *cell) {
	c.t.Helper()
	asked := time.Now()
	mark := c.startDeaf()
	due := time.Now()
	if e.end == nil {
		due = asked.Add(e.after)
	} else {
		e.end(c)
	}
	c.awaitNothingLeft(mark)
	c.t.Logf("nothing is left %s after the end was due; an agent has %s to end by itself",
		time.Since(due).Round(10*time.Millisecond), c.cfg.Agents.Grace)
	c.t.Logf("the chat says %q", c.answeredBy(e.says).Text)
	c.runTurn()
}

// mortalTown returns a town whose ductor is a separate process that the test can kill.
func mortalTown(t *testing.T) *ordeal {
	t.Helper()
	town := boxedTown(t, nil)
	town.extra = sandboxed(town.cfg)
	o := &ordeal{town: town, config: town.writeConfig(), random: rand.New(rand.NewPCG(1, 1))}
	o.rise()
	return o
}
