package simulated

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/lang"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// TestADecisionThatMeetsADeadAgent kills each agent at the moment at which a user decides: the answer says what came of it.
func TestADecisionThatMeetsADeadAgent(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			o := playAsked(t, agent, scenario.Kill{What: scenario.Agents}, scenario.Press{By: scenario.Owner, Button: scenario.AllowOnce, Of: "p1"})
			if len(o.evidence.Presses) != 1 {
				t.Fatalf("there are %d presses, want 1", len(o.evidence.Presses))
			}
			p := lang.Language("en").Printer()
			if answer := o.evidence.Presses[0].Answer; answer != p.Text("approval.not-told") && answer != p.Text("approval.agent-gone") {
				t.Errorf("the press was answered %q", answer)
			}
		})
	}
}

// TestAReasonThatMeetsADeadAgent kills an agent that reads a reason as its next message, as the user sends one: it runs.
func TestAReasonThatMeetsADeadAgent(t *testing.T) {
	o := playAsked(t, "gemini",
		scenario.Press{By: scenario.Owner, Button: "approval.deny-with-reason", Of: "p1"}, scenario.Wait{For: 2 * time.Second},
		scenario.Kill{What: scenario.Agents}, scenario.Say{By: scenario.Owner, Prompt: scenario.Prompt{Token: "p2", Acts: []scenario.Act{scenario.Text{Words: 5}}}})
	if !slices.ContainsFunc(o.evidence.Agents, func(e judge.AgentEvent) bool { return e.Token == "p2" && e.What == judge.Got }) {
		t.Error("the reason did not run as the next message")
	}
}

// playAsked has an agent ask, and then plays the steps. It fails for what they violate.
func playAsked(t *testing.T, agent string, steps ...scenario.Step) outcome {
	t.Helper()
	s, err := scenario.Parse("agents " + agent + "\nowner says p1: ask; text 5\nwait 5s\n")
	if err != nil {
		t.Fatal(err)
	}
	s.Steps = append(s.Steps, steps...)
	o := playWhole(t, s)
	for _, v := range o.found {
		t.Error(v)
	}
	if t.Failed() {
		t.Log(strings.Join(o.log, "\n"))
	}
	return o
}
