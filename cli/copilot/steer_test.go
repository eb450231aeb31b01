package copilot

import (
	"errors"
	"testing"

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
