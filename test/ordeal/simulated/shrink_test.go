package simulated

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

var (
	shrink = flag.Uint64("shrink", 0, "the seed whose scenario is made as short as it can be while it violates "+
		"the same rule")
	file = flag.String("script", "", "a file with a scenario to play, or to shrink with -shrink 1")
)

// TestScript plays the scenario in a file, or shrinks the scenario of a seed.
func TestScript(t *testing.T) {
	if *shrink == 0 && *file == "" {
		t.Skip("no -shrink and no -script")
	}
	s := scenario.Generate(*shrink, profile())
	if *file != "" {
		text, err := os.ReadFile(*file)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = scenario.Parse(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	if *shrink != 0 {
		rules := rulesOf(t, s)
		if len(rules) == 0 {
			t.Skip("it violates nothing")
		}
		s = scenario.Shrink(s, func(s scenario.Scenario) bool { return slices.Contains(rulesOf(t, s), rules[0]) })
	}
	found, log, _ := play(t, s)
	for _, v := range found {
		t.Error(v)
	}
	t.Logf("%s\n%s", s, strings.Join(log, "\n"))
}

func rulesOf(t *testing.T, s scenario.Scenario) (rules []string) {
	found, _, _ := play(t, s)
	return rulesIn(found)
}

func rulesIn(found []judge.Violation) (rules []string) {
	for _, v := range found {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
