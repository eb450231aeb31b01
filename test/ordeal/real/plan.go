package real

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// conditions are properties of the machine on which a scenario runs.
type conditions struct {
	Disk   diskKind
	Line   network
	Load   int  // number of processes that keep a CPU busy
	Memory int  // megabytes for ductor, its runner and agents; 0 means no limit
	Deaf   bool // some commands leave behind processes that ignore signals
}

// names returns the names of all conditions that differ from a normal machine.
func (c conditions) names() (all []string) {
	if c.Disk != diskOfMachine {
		all = append(all, "machine: small "+string(c.Disk))
	}
	if c.Line != fair {
		all = append(all, "machine: network "+string(c.Line))
	}
	if c.Load > 0 {
		all = append(all, fmt.Sprintf("machine: load %d", c.Load))
	}
	if c.Memory > 0 {
		all = append(all, fmt.Sprintf("machine: %d MB of memory", c.Memory))
	}
	if c.Deaf {
		all = append(all, "machine: tools leave processes that ignore signals")
	}
	return all
}

// conditionsOf chooses the conditions for the scenario of a seed. Each condition is normal for at least half of the
// seeds.
func conditionsOf(seed uint64) conditions {
	random := rand.New(rand.NewPCG(5, seed))
	c := conditions{Disk: diskOfMachine, Line: fair, Deaf: random.IntN(3) == 0}
	switch random.IntN(4) {
	case 0:
		c.Disk = diskTmpfs
	case 1:
		c.Disk = diskExt4
	}
	switch random.IntN(8) {
	case 0:
		c.Line = slow
	case 1:
		c.Line = lossy
	case 2:
		c.Line = chopped
	}
	if random.IntN(8) == 0 {
		c.Load = 20
	}
	if random.IntN(10) == 0 {
		c.Memory = 96
	}
	return c
}

// plan generates the scenario of a seed. The scenario contains only faults that are possible under the conditions c,
// and no long waits.
func plan(seed uint64, c conditions) scenario.Scenario {
	without := []string{
		"clock", "schedule", "deliver", "redeliver", "terminal", "disk eio", "disk fsync",
	}
	if c.Disk == diskOfMachine {
		without = append(without, "disk full")
	}
	if c.Disk != diskExt4 {
		without = append(without, "disk slow")
	}
	s := scenario.Generate(seed, scenario.Profile{Steps: 30, Agents: agentNames[:], Without: without})
	for i, step := range s.Steps {
		s.Steps[i] = hurried(step)
	}
	return s
}

// Maximum durations in a scenario. They are short, because the scenario runs in real time.
const (
	mostWait = 2 * time.Second
	mostDown = 2 * time.Second
	mostWork = 1500 * time.Millisecond
	mostBan  = 4 * time.Second
)

// hurried returns the step, with durations that do not exceed the maximum durations of package real.
func hurried(step scenario.Step) scenario.Step {
	switch step := step.(type) {
	case scenario.Wait:
		return scenario.Wait{For: min(step.For, mostWait)}
	case scenario.Stop:
		step.Down = min(step.Down, mostDown)
		return step
	case scenario.Suspend:
		return scenario.Suspend{For: min(step.For, mostWait)}
	case scenario.Telegram:
		step.For = min(step.For, mostBan)
		return step
	case scenario.Disk:
		step.For = min(step.For, mostBan)
		return step
	case scenario.Say:
		step.Acts = hurriedActs(step.Acts)
		return step
	case scenario.Send:
		step.Acts = hurriedActs(step.Acts)
		return step
	case scenario.Edit:
		step.Acts = hurriedActs(step.Acts)
		return step
	}
	return step
}

func hurriedActs(acts []scenario.Act) []scenario.Act {
	acts = slices.Clone(acts)
	for i, act := range acts {
		switch act := act.(type) {
		case scenario.Text:
			if most := mostWork / time.Duration(max(1, act.Words)); act.Every > most {
				act.Every = most.Truncate(time.Millisecond)
			}
			acts[i] = act
		case scenario.Run:
			acts[i] = scenario.Run{For: min(act.For, mostWork)}
		case scenario.Sleep:
			acts[i] = scenario.Sleep{For: min(act.For, mostWork)}
		case scenario.Fail: // if Times is 0, all requests fail, and an agent retries them for minutes
			acts[i] = scenario.Fail{Status: act.Status, Times: max(1, act.Times)}
		case scenario.Background:
			acts[i] = scenario.Background{For: min(act.For, mostWork)}
		case scenario.Break:
			// An agent that hangs would take minutes, because ductor waits that long before it ends the agent.
			if act.How == scenario.Hangs || act.How == scenario.Holding {
				acts[i] = scenario.Sleep{For: mostWork}
			}
		}
	}
	return acts
}
