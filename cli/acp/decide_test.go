package acp

import (
	"strings"
	"testing"

	"ductor/cli"
)

// A decision does not count for a call that the agent changed before ductor could send it.
func TestACallThatChangedBeforeTheDecisionIsSent(t *testing.T) {
	for _, allow := range []bool{true, false} {
		provider, p := play(t, nil)
		req := wish(t, "hi")
		s := open(t, provider, req)
		events, release := make(chan cli.Event, 100), make(chan struct{})
		go s.Turn(t.Context(), req, func(ev cli.Event) {
			if ev, held := ev.(cli.ToolStarted); held && ev.ID == "slow" {
				<-release // as if the chat were slow
			}
			events <- ev
		})
		turn := &playedTurn{t: t, events: events}
		prompt := p.hear(methodPrompt)
		p.ask(5, "s1", "c", "execute")
		asked := until[cli.ApprovalAsked](turn)
		p.update(updateTool, `"toolCallId":"slow","title":"Slow","kind":"read"`)
		p.update(updateToolNow, `"toolCallId":"c","rawInput":{"command":"rm -rf x"}`)
		p.say("Not a line.") // the peer has read the updates when it takes this one
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: allow}); err != nil {
			t.Fatal(err)
		}
		close(release)
		if allow {
			again := until[cli.ApprovalAsked](turn)
			if again.ID == asked.ID || again.Title != "rm -rf x" {
				t.Errorf("asked again %+v", again)
			}
			if err := s.Decide(t.Context(), again.ID, cli.Decision{Allow: true}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]string{true: `"yes"`, false: `"no"`}[allow]
		if answer := p.hear(""); !strings.Contains(string(answer.Result), want) {
			t.Errorf("answered %s, want %s", answer.Result, want)
		}
		p.endTurn(prompt)
		until[cli.Result](turn)
	}
}

// A decision allows nothing if its tool or its turn ended, or the agent withdrew its request, before ductor sent it.
func TestADecisionThatComesTooLate(t *testing.T) {
	for _, before := range []string{"the end of the turn", "the end of the tool", "a withdrawal"} {
		provider, p := play(t, nil)
		req := wish(t, "hi")
		s := open(t, provider, req)
		events, release := make(chan cli.Event, 100), make(chan struct{})
		go s.Turn(t.Context(), req, func(ev cli.Event) {
			if ev, held := ev.(cli.ToolStarted); held && ev.ID == "slow" {
				<-release
			}
			events <- ev
		})
		turn := &playedTurn{t: t, events: events}
		prompt := p.hear(methodPrompt)
		p.ask(5, "s1", "c", "execute")
		asked := until[cli.ApprovalAsked](turn)
		p.update(updateTool, `"toolCallId":"slow","title":"Slow","kind":"read"`)
		switch before {
		case "the end of the turn":
			p.endTurn(prompt)
		case "the end of the tool":
			p.update(updateToolNow, `"toolCallId":"c","status":"failed"`)
		default:
			p.say(`{"method":"$/cancel_request","params":{"requestId":5}}`)
		}
		p.say("Not a line.")
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		close(release)
		if answer := p.hear(""); !strings.Contains(string(answer.Result), "cancelled") {
			t.Errorf("after %s: answered %s", before, answer.Result)
		}
		if before != "the end of the turn" {
			p.endTurn(prompt)
		}
		until[cli.Result](turn)
	}
}

// A call that ends while its approval is open is not asked about again.
func TestACallThatEndsWhileAUserDecides(t *testing.T) {
	_, p, turn, prompt := playTurn(t, nil)
	p.ask(5, "s1", "c", "execute")
	asked := until[cli.ApprovalAsked](turn)
	p.update(updateToolNow, `"toolCallId":"c","status":"failed","rawInput":{"command":"rm -rf x"}`)
	if gone := until[cli.ApprovalWithdrawn](turn); gone.ID != asked.ID {
		t.Errorf("withdrawn %+v", gone)
	}
	p.endTurn(prompt)
	for ev := range turn.events {
		if again, asked := ev.(cli.ApprovalAsked); asked {
			t.Errorf("asked again %+v", again)
		}
	}
}
