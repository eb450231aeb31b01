package copilot

import (
	"context"
	"fmt"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// Requests of a detached turn are left to the process that resumes it, even while this process still uses the agent's
// process for other sessions.
func TestWhatADetachedTurnAsksForIsNotRefused(t *testing.T) {
	p, peer := newPeer(t, func(p *peer, m message) bool {
		if m.Method != "session.send" {
			return false
		}
		p.reply(m, `{"messageId":"m1"}`)
		p.event("user.message", `{"messageId":"m1"}`)
		p.event("assistant.message_delta", `{"messageId":"a1","deltaContent":"Hi"}`)
		return true
	})
	req := cli.Request{Prompt: "hello", Attended: true}
	clitest.Open(t, p, cli.Live, req) // prevents the process from being detached
	one := clitest.Open(t, p, cli.Live, req)
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := begin(ctx, one, req)
	await[cli.TextDelta](t, turn)
	cancel(cli.ErrDetached)
	if r := turn.result(t); !r.Detached {
		t.Fatalf("%+v, %+v", r, r.Err)
	}
	peer.event("permission.requested", shellRequest)
	peer.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"userInput.request","params":{"sessionId":%q,"question":"Which?"}}`, peer.session))
	peer.say(`{"jsonrpc":"2.0","id":99,"method":"hooks.invoke","params":{}}`)
	peer.told(func(m message) bool { return string(m.ID) == "99" }) // earlier messages are handled by then
	peer.mu.Lock()
	defer peer.mu.Unlock()
	for _, m := range peer.heard {
		if m.Method == "session.permissions.handlePendingPermissionRequest" || string(m.ID) == "5" {
			t.Errorf("it was answered: %+v", m)
		}
	}
}
