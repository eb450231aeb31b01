package copilot

import (
	"context"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// leftPeer returns an agent process that the previous ductor process left with two turns in it, T1 of the session s1
// and T2 of s2.
func leftPeer(t *testing.T) (*Provider, *peer, cli.LeftRun) {
	t.Helper()
	p, peer := newPeer(t, nil)
	peer.left = true
	return p, peer, cli.LeftRun{
		Run: "run", Purpose: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: "x"}, Alive: true,
		Input: cli.LeftInput{End: 10},
		Marks: []cli.Mark{{Turn: "T1", Note: "s1"}, {Turn: "T2", Note: "s2"}},
	}
}

func (p *peer) plays(session string) {
	p.session = session
	p.event("user.message", `{"messageId":"m1"}`)
	p.event("assistant.message", `{"messageId":"a","content":"Hi."}`)
	p.event("session.idle", `{}`)
}

func adopt(t *testing.T, p *Provider, left cli.LeftRun, turn cli.TurnID) (cli.Session, cli.Request) {
	t.Helper()
	req := cli.Request{Turn: turn, Prompt: "hello"}
	s, err := p.Adopt(t.Context(), left, req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, req
}

// A process that was left with several turns does not end with the session of the first resumed one.
func TestAProcessIsKeptForTheTurnsThatWereLeftInIt(t *testing.T) {
	p, peer, left := leftPeer(t)
	one, req := adopt(t, p, left, "T1")
	go peer.plays("s1")
	if r, _ := clitest.Play(t.Context(), one, req); r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if peer.over() {
		t.Fatal("the process was ended under a turn that is to be resumed")
	}
	two, req := adopt(t, p, left, "T2")
	go peer.plays("s2")
	if r, _ := clitest.Play(t.Context(), two, req); r.Err != nil || r.Text != "Hi." {
		t.Errorf("%+v, %+v", r, r.Err)
	}
	if err := two.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-peer.done // with the last of them
}
