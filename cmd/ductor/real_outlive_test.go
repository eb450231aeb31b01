package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
)

// ductor is killed ten times at random moments of a turn of each real agent.
func TestTheRealAgentsOutliveDuctor(t *testing.T) {
	realagent.LongOnly(t)
	const deaths = 10
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			town, _ := realSurroundings(t, agent, nil)
			town.agent = agent
			o := town.ordeal(11)
			died := 0
			for i := 0; died < deaths; i++ {
				trial := newTrial(i)
				if agent == "codex" {
					trial.first = ""
				}
				o.say("%s", trial.script())
				if i == 0 { // a cold start takes a second or more
					awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, trial.name+"-a"))
				}
				for range 3 {
					o.strike(time.Duration(o.random.IntN(500)) * time.Millisecond)
					died++
				}
				o.awaitWhole(trial)
				o.ranOnce(trial)
			}
			t.Logf("%d deaths, %d answers had to be asked for once more", died, len(o.again))
		})
	}
}

// aborts is small in the gate, since each abort starts a new agent. The promise was tested with 50.
var aborts = flag.Int("aborts", 2, "how often each real agent is aborted with a deep tree of processes")

// Tools of real agents start three levels of processes in separate sessions that ignore SIGTERM. Each abort ends all
// of them.
func TestAnAbortEndsEverythingThatRealAgentsStarted(t *testing.T) {
	for _, agent := range realagent.Some("claude", "codex") {
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) { c.Agents.MaxLive = 2 })
			work := town.cfg.Projects.DefaultDir
			random := rand.New(rand.NewPCG(1, 2))
			var slowest time.Duration
			for i := range *aborts {
				town.say(`[[start]] [[tool cmd="%s touch started-%d; sleep 600"]]`,
					strings.ReplaceAll(deepTree(i), `"`, `\"`), i)
				awaitFile(t, filepath.Join(work, fmt.Sprintf("deep-%d", i)))
				time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
				began := time.Now()
				town.say("/abort")
				// The agent that is opened ahead of the next message soon starts processes too.
				left := town.livingOfTurns()
				for ; len(left) > 0 && time.Since(began) < patience; left = town.livingOfTurns() {
					time.Sleep(5 * time.Millisecond)
				}
				took := time.Since(began)
				slowest = max(slowest, took)
				if len(left) > 0 {
					t.Fatalf("round %d: after %s these live: %q", i, took, left)
				}
			}
			t.Logf("%d aborts, all of it dead after %s at the latest", *aborts, slowest.Round(time.Millisecond))
		})
	}
}

// deepTree returns a command that starts nested processes, each in its own session.
func deepTree(i int) string {
	return fmt.Sprintf(
		`setsid nohup sh -c 'setsid nohup sh -c "setsid nohup sleep 600 & touch deep-%d; sleep 600" & sleep 600' >/dev/null 2>&1 &`, i)
}
