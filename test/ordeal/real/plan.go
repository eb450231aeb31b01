package real

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// conditions are properties of the machine of a seed, in addition to its scenario.
type conditions struct {
	Disk   diskKind
	Line   weather
	Load   int  // number of busy loops
	Memory int  // megabytes for ductor, its runner and agents; 0 for no limit
	Deaf   bool // tools leave processes that ignore signals
}

// names returns the names of unusual conditions.
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

// conditionsOf returns the conditions of a seed. Most seeds get a plain machine.
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

// plan creates the scenario of a seed, with faults that this machine supports and with short waits.
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

// Upper limits of durations in a scenario, which runs in real time.
const (
	mostWait = 2 * time.Second
	mostDown = 2 * time.Second
	mostWork = 1500 * time.Millisecond
	mostBan  = 4 * time.Second
)

// hurried returns a step whose duration is limited.
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
		case scenario.Fail: // agents retry a permanent failure for minutes
			acts[i] = scenario.Fail{Status: act.Status, Times: max(1, act.Times)}
		case scenario.Background:
			acts[i] = scenario.Background{For: min(act.For, mostWork)}
		case scenario.Break:
			if act.How == scenario.Hangs || act.How == scenario.Holding { // ductor ends these only after minutes
				acts[i] = scenario.Sleep{For: mostWork}
			}
		}
	}
	return acts
}
