package copilot

import (
	"context"
	"testing"
	"testing/synctest"

	"ductor/cli"
	"ductor/cli/clitest"
)

// If a session is closed while a turn is being prepared, the turn fails, and the process is released once.
func TestASessionThatIsClosedAsATurnBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held message
		p, peer := newPeer(t, func(_ *peer, m message) bool {
			if m.Method == "session.mode.set" && m.Params["mode"] != nil && held.Method == "hold" {
				held = m
				return true
			}
			return false
		})
		req := cli.Request{Prompt: "hello"}
		s, beside := clitest.Open(t, p, cli.Live, req), clitest.Open(t, p, cli.Live, req)
		held.Method = "hold"
		asked := req
		asked.Permission = cli.Bypass
		turn := begin(t.Context(), s, asked)
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		peer.reply(held, `{"success":true}`)
		if r := turn.result(t); r.Err == nil {
			t.Errorf("%+v", r)
		}
		if r, _ := clitest.Play(t.Context(), beside, req); r.Err != nil {
			t.Errorf("the process went with it: %+v", r.Err)
		}
	})
}

// An adopted session that is closed before its turn is resumed has no turn.
func TestAnAdoptedSessionThatIsClosedBeforeItsTurn(t *testing.T) {
	p, _, left := leftPeer(t)
	s, req := adopt(t, p, left, "T1")
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r, _ := clitest.Play(t.Context(), s, req); r.Err == nil {
		t.Errorf("%+v", r)
	}
}
