package copilot

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// steering plays a turn, sends a message into it when an event of type T comes, and returns the result of the sending.
func steering[T cli.Event](t *testing.T, s cli.Session, req cli.Request) (r cli.Result, steered error) {
	t.Helper()
	s.Turn(t.Context(), req, func(ev cli.Event) {
		if _, ok := ev.(T); ok {
			steered = s.(cli.Steerer).Steer(t.Context(), cli.Request{Prompt: "more"})
		}
		if end, ok := ev.(cli.Result); ok {
			r = end
		}
	})
	return r, steered
}

// sends returns the modes of the prompts that the peer got.
func (p *peer) sends() (modes []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.heard {
		if m.Method == "session.send" {
			modes = append(modes, m.Params["mode"])
		}
	}
	return modes
}

// No message overtakes the prompt of its turn.
func TestSteeringBeforeThePromptWasSent(t *testing.T) {
	p, peer := newPeer(t, nil)
	req := cli.Request{Prompt: "hello"}
	r, err := steering[cli.SessionStarted](t, clitest.Open(t, p, cli.Live, req), req)
	if modes := peer.sends(); !errors.Is(err, cli.ErrNoTurn) || len(modes) != 1 || modes[0] != "enqueue" || r.Err != nil {
		t.Errorf("%v; it was sent %v; %+v, %+v", err, modes, r, r.Err)
	}
}

// A rejected turn accepts no message: the message would become a turn of its own, which no session reads.
func TestSteeringATurnThatWasRefused(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method == "session.send" && m.Params["mode"] == "enqueue" {
			p.refuse(m, "Request session.send failed with message: Session not found for sessionId: x")
			return true
		}
		return false
	})
	req := cli.Request{Prompt: "hello"}
	r, err := steering[cli.Result](t, clitest.Open(t, p, cli.Live, req), req)
	if modes := peer.sends(); !errors.Is(err, cli.ErrNoTurn) || len(modes) != 1 || r.Err == nil {
		t.Errorf("%v; it was sent %v; %+v", err, modes, r)
	}
}

// steersOnly is the peer behaviour that starts a turn without an end, and accepts a message that its model never reads.
func steersOnly(p *peer, m message) bool {
	switch {
	case m.Method == "session.abort":
	case m.Method != "session.send":
		return false
	case m.Params["mode"] == "immediate":
		p.reply(m, `{"messageId":"m2"}`)
	default:
		p.reply(m, `{"messageId":"m1"}`)
		p.event("user.message", `{"messageId":"m1"}`)
		p.event("assistant.message", `{"messageId":"a","content":"Hi."}`)
	}
	return true
}

func TestAMessageThatATurnInSilenceDidNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPeer(t, steersOnly)
		req := cli.Request{Prompt: "hello"}
		s := clitest.Open(t, p, cli.Live, req)
		turn := begin(t.Context(), s, req)
		await[cli.TextDelta](t, turn)
		if err := s.(cli.Steerer).Steer(t.Context(), cli.Request{Prompt: "more", Turn: "more"}); err != nil {
			t.Error(err)
		}
		time.Sleep(cli.DefaultStall)
		r := turn.result(t)
		if r.Err == nil || r.Err.Kind != cli.TimedOut || !slices.Equal(r.Steered.Unread, []cli.TurnID{"more"}) {
			t.Errorf("%+v: unread are %q", r.Err, r.Steered.Unread)
		}
		if s.Info().Alive {
			t.Error("the session is said to be of use")
		}
	})
}

// The process ends while it is not known whether it got a message: the message runs next, and only there.
func TestAMessageInFlightWhenTheProcessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPeer(t, func(p *peer, m message) bool {
			if m.Params["mode"] == "immediate" {
				p.die(1)
				return true
			}
			return steersOnly(p, m)
		})
		req := cli.Request{Prompt: "hello"}
		s := clitest.Open(t, p, cli.Live, req)
		turn := begin(t.Context(), s, req)
		await[cli.TextDelta](t, turn)
		err := s.(cli.Steerer).Steer(t.Context(), cli.Request{Prompt: "more", Turn: "more"})
		if r := turn.result(t); !errors.Is(err, cli.ErrNoTurn) || len(r.Steered.Unread) > 0 {
			t.Errorf("%v, and unread are %q", err, r.Steered.Unread)
		}
	})
}
