package acp

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/rpc"
)

// slowTurn is a turn with an open approval. Its goroutine waits for a slow chat until release.
type slowTurn struct {
	session live
	peer    *peer
	turn    *playedTurn
	prompt  rpc.Message
	asked   cli.ApprovalAsked
	release func()
}

func playSlowly(t *testing.T) slowTurn {
	t.Helper()
	provider, p := play(t, nil)
	req := wish(t, "hi")
	s := open(t, provider, req)
	events, slow := make(chan cli.Event, 100), make(chan struct{})
	go s.Turn(t.Context(), req, func(ev cli.Event) {
		if ev, held := ev.(cli.ToolStarted); held && ev.ID == "slow" {
			<-slow
		}
		events <- ev
	})
	turn := &playedTurn{t: t, events: events}
	prompt := p.hear(methodPrompt)
	p.ask(5, "s1", "c", "execute")
	asked := until[cli.ApprovalAsked](turn)
	p.update(updateTool, `"toolCallId":"slow","title":"Slow","kind":"read"`)
	return slowTurn{s, p, turn, prompt, asked, func() { close(slow) }}
}

// A decision does not count for a call that the agent changed before ductor could send it.
func TestACallThatChangedBeforeTheDecisionIsSent(t *testing.T) {
	for _, allow := range []bool{true, false} {
		s := playSlowly(t)
		s.peer.update(updateToolNow, `"toolCallId":"c","rawInput":{"command":"rm -rf x"}`)
		s.peer.say("Not a line.") // the peer has read the updates when it takes this one
		if err := s.session.Decide(t.Context(), s.asked.ID, cli.Decision{Allow: allow}); err != nil {
			t.Fatal(err)
		}
		s.release()
		if allow {
			if gone := until[cli.ApprovalWithdrawn](s.turn); gone.ID != s.asked.ID || !gone.Superseded {
				t.Errorf("the first request ends as %+v", gone)
			}
			again := until[cli.ApprovalAsked](s.turn)
			if again.ID == s.asked.ID || again.Title != "rm -rf x" {
				t.Errorf("asked again %+v", again)
			}
			if err := s.session.Decide(t.Context(), again.ID, cli.Decision{Allow: true}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]string{true: `"yes"`, false: `"no"`}[allow]
		if answer := s.peer.hear(""); !strings.Contains(string(answer.Result), want) {
			t.Errorf("answered %s, want %s", answer.Result, want)
		}
		s.peer.endTurn(s.prompt)
		until[cli.Result](s.turn)
	}
}

// A decision allows nothing if its tool or its turn ended, or the agent withdrew its request, before ductor sent it.
func TestADecisionThatComesTooLate(t *testing.T) {
	for _, before := range []string{"the end of the turn", "the end of the tool", "a withdrawal"} {
		s := playSlowly(t)
		switch before {
		case "the end of the turn":
			s.peer.endTurn(s.prompt)
		case "the end of the tool":
			s.peer.update(updateToolNow, `"toolCallId":"c","status":"failed"`)
		default:
			s.peer.say(`{"method":"$/cancel_request","params":{"requestId":5}}`)
		}
		s.peer.say("Not a line.")
		if err := s.session.Decide(t.Context(), s.asked.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		s.release()
		if answer := s.peer.hear(""); !strings.Contains(string(answer.Result), "cancelled") {
			t.Errorf("after %s: answered %s", before, answer.Result)
		}
		if before != "the end of the turn" {
			s.peer.endTurn(s.prompt)
		}
		until[cli.Result](s.turn)
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

// A request for a call with the ID of an ended one is about another call, and a user answers it.
func TestARequestWithTheIDOfAnEndedCall(t *testing.T) {
	s, p, turn, prompt := playTurn(t, nil)
	for i, id := range []cli.ToolID{"c", "c#2"} {
		p.ask(5+i, "s1", "c", "execute")
		asked := until[cli.ApprovalAsked](turn)
		if asked.Started != id {
			t.Errorf("request %d is about %q, want %q", i, asked.Started, id)
		}
		if err := s.Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		if answer := p.hear(""); !strings.Contains(string(answer.Result), `"yes"`) {
			t.Errorf("request %d is answered with %s", i, answer.Result)
		}
		p.update(updateToolNow, `"toolCallId":"c","status":"completed"`)
		if ended := until[cli.ToolEnded](turn); ended.ID != id {
			t.Errorf("the call %q has ended, want %q", ended.ID, id)
		}
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
}
