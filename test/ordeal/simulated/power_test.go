package simulated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ductor/test/ordeal/scenario"
)

// cut adds two power failures to a scenario: at a write to the database, a flush of it, or a call to Telegram, at
// different moments.
func cut(s scenario.Scenario) scenario.Scenario {
	random := rand.New(rand.NewPCG(s.Seed, 1))
	for range 2 {
		at := random.IntN(len(s.Steps) + 1)
		s.Steps = slices.Insert(s.Steps, at, scenario.Step(scenario.Stop{
			How: scenario.Power, Point: []scenario.Point{scenario.AtWrite, scenario.AtWrite, scenario.AtFlush,
				scenario.AtCall}[random.IntN(4)], N: 1 + random.IntN(25),
		}))
	}
	return s
}

// TestPowerFailures plays calm scenarios in which the power fails.
func TestPowerFailures(t *testing.T) {
	p := profile()
	p.Calm, p.Steps = true, min(p.Steps, 10)
	for seed := *from; seed < *from+*seeds && !(*until && t.Failed()); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := cut(scenario.Generate(seed, p))
			found, log, _ := play(t, s)
			for _, v := range found {
				t.Error(v)
			}
			if t.Failed() || testing.Verbose() && *seeds == 1 {
				t.Logf("%s\n%s\nagain: go test ./test/ordeal/simulated -run TestPowerFailures -from %d -seeds 1", s,
					strings.Join(log, "\n"), seed)
			}
		})
	}
}
