package copilot

import (
	"context"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A prompt that was refused leaves nothing for which its process is held to be at work, also where its turn was aborted
// before the refusal came.
func TestAProcessRestsThoughAnAbortedTurnWasRefused(t *testing.T) {
	var asked message
	p, peer := newPeer(t, func(p *peer, m message) bool {
		switch {
		case m.Method == "session.send" && asked.Method == "":
			asked = m
		case m.Method == "session.abort":
			p.refuse(asked, "Request session.send failed with message: Session not found for sessionId: x")
		default:
			return false
		}
		return true
	})
	req := cli.Request{Prompt: "hello", Turn: "T1"}
	s := clitest.Open(t, p, cli.Live, req)
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := begin(ctx, s, req)
	peer.told(func(m message) bool { return m.Method == "session.send" })
	cancel(cli.ErrAborted)
	if r := turn.result(t); !r.Aborted {
		t.Errorf("%+v, %+v", r, r.Err)
	}
	req.Turn = "T2"
	if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.Detach() // which is after what was to be recorded
	if n := len(peer.marks); n == 0 || peer.marks[n-1].Turn != cli.RestMark {
		t.Errorf("marks %+v", peer.marks)
	}
}
