package copilot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
)

// never is the peer behaviour that leaves prompts and requests to abort unanswered.
func never(_ *peer, m message) bool { return m.Method == "session.send" || m.Method == "session.abort" }

func TestSilenceEndsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, peer := newPeer(t, never)
		req := cli.Request{Prompt: "hello"}
		s := clitest.Open(t, p, cli.Live, req)
		began := time.Now()
		r, _ := clitest.Play(t.Context(), s, req)
		if r.Err == nil || r.Err.Kind != cli.TimedOut {
			t.Errorf("%+v", r.Err)
		}
		if took := time.Since(began); took < cli.DefaultStall || took > cli.DefaultStall+2*cli.DefaultGrace {
			t.Errorf("it took %s", took)
		}
		if !peer.over() {
			t.Error("the deaf process was left alive")
		}
	})
}

func TestAPersonMayTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPeer(t, func(p *peer, m message) bool {
			if m.Method == "session.permissions.handlePendingPermissionRequest" {
				p.reply(m, `{"success":true}`)
				p.event("session.idle", `{}`)
				return true
			}
			return waits(p, m)
		})
		req := cli.Request{Prompt: "hello", Attended: true}
		s := clitest.Open(t, p, cli.Live, req)
		turn := begin(t.Context(), s, req)
		asked := await[cli.ApprovalAsked](t, turn)
		time.Sleep(24 * time.Hour)
		if err := s.(cli.Decider).Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); err != nil {
			t.Error(err)
		}
		if r := turn.result(t); r.Err != nil {
			t.Errorf("%+v", r.Err)
		}
	})
}

// A process that hangs for one session and works for another stays with that one.
func TestADeafProcessWithOthersInItIsLeftToThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, peer := newPeer(t, never)
		req := cli.Request{Prompt: "hello"}
		one, two := clitest.Open(t, p, cli.Live, req), clitest.Open(t, p, cli.Live, req)
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := begin(ctx, one, req), begin(t.Context(), two, req)
		time.Sleep(time.Second)
		cancel(cli.ErrAborted)
		if r := first.result(t); !r.Aborted {
			t.Errorf("%+v", r)
		}
		if one.Info().Alive || one.Close(t.Context()) != nil {
			t.Error("the session is said to be of use")
		}
		if peer.over() {
			t.Error("the process was ended under the other session")
		}
		peer.event("user.message", `{"messageId":"m1"}`) // of the session opened last
		peer.event("assistant.message", `{"messageId":"a","content":"Hi."}`)
		peer.event("session.idle", `{}`)
		if r := second.result(t); r.Err != nil || r.Text != "Hi." {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		if err := two.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-peer.done
	})
}
