package copilot

import (
	"context"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A process in which something of an aborted turn may run says so to the next process, and that one ends it with the last
// turn in it.
func TestWhatAnAbortLeftIsEndedAfterARestart(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method != "session.send" {
			return false
		}
		p.session = m.Params["sessionId"].(string)
		p.reply(m, `{"messageId":"m1"}`)
		p.event("user.message", `{"messageId":"m1"}`)
		p.event("tool.execution_start", `{"toolCallId":"c1","toolName":"bash","arguments":{"command":"sleep 9 &"}}`)
		return true
	})
	req := cli.Request{Prompt: "hello", Turn: "T1"}
	one, two := clitest.Open(t, p, cli.Live, req), clitest.Open(t, p, cli.Live, req)
	goes, letGo := context.WithCancelCause(t.Context())
	defer letGo(nil)
	beside := begin(goes, two, req)
	await[cli.ToolStarted](t, beside)
	ctx, cancel := context.WithCancelCause(t.Context())
	req.Turn = "T2"
	turn := begin(ctx, one, req)
	await[cli.ToolStarted](t, turn)
	cancel(cli.ErrAborted)
	turn.result(t)
	letGo(cli.ErrDetached)
	beside.result(t)
	one.Detach()
	two.Detach()
	if !slices.ContainsFunc(peer.marks, func(m cli.Mark) bool { return m.Turn == cli.SpoilMark }) {
		t.Fatalf("it is not noted: %+v", peer.marks)
	}

	p, peer, left := leftPeer(t)
	left.Marks[0].Turn = cli.SpoilMark
	s, req := adopt(t, p, left, "T2")
	go peer.plays("s2")
	if r, _ := clitest.Play(t.Context(), s, req); r.Err != nil {
		t.Fatal(r.Err)
	}
	if !peer.over() {
		t.Error("it goes on after its last turn")
	}
}
