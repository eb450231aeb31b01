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

// TestADecisionThatMeetsADeadAgent kills each agent while a user decides. The answer to the press reports it, unless
// the decision or the end of the agent comes first: then the test tries again.
func TestADecisionThatMeetsADeadAgent(t *testing.T) {
	const tries = 50
	p := lang.Language("en").Printer()
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			for range tries {
				press := scenario.Press{By: scenario.Owner, Button: scenario.AllowOnce, Of: "p1"}
				o := playAsked(t, agent, killAgents, press)
				if len(o.evidence.Presses) == 0 { // the approval was withdrawn first
					continue
				}
				switch answer := o.evidence.Presses[0].Answer; answer {
				case p.Text("approval.not-told"), p.Text("approval.agent-gone"):
					return
				case p.Text("approval.is-allowed"): // the agent died with the decision
				default:
					t.Fatalf("the press was answered %q", answer)
				}
			}
			t.Errorf("no press of %d met a dead agent", tries)
		})
	}
}

// TestAReasonThatMeetsADeadAgent kills an agent that would get a reason as its next message, while the user sends
// one. The message runs, or the user learns that it came too late.
func TestAReasonThatMeetsADeadAgent(t *testing.T) {
	reason := scenario.Prompt{Token: "p2", Acts: []scenario.Act{scenario.Text{Words: 5}}}
	o := playAsked(t, "gemini",
		scenario.Press{By: scenario.Owner, Button: "approval.deny-with-reason", Of: "p1"},
		scenario.Wait{For: 2 * time.Second}, killAgents,
		scenario.Say{By: scenario.Owner, Prompt: reason})
	ran := func(e judge.AgentEvent) bool { return e.Token == reason.Token && e.What == judge.Got }
	tooLate := lang.Language("en").Printer().Text("approval.agent-gone")
	if !slices.ContainsFunc(o.evidence.Agents, ran) && !strings.Contains(strings.Join(o.log, "\n"), tooLate) {
		t.Error("the reason did not run as the next message, and no message says so")
	}
}

var killAgents = scenario.Kill{What: scenario.Agents}

// playAsked plays a prompt with a request for approval, followed by the steps. It fails if they violate a rule.
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
