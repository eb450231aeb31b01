package conversation_test

import (
	"context"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// If a group becomes a supergroup, everything goes on under its new ID: what waits runs with the choices and the
// session of the group, after the running turn, which users can stop there.
func TestAGroupMovesWithItsQueue(t *testing.T) {
	was, is := orchestrator.ConversationID{Chat: -5}, orchestrator.ConversationID{Chat: -1000000000005}
	for name, other := range map[string]bool{"to a new ID": false, "to a known ID": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
				if req.Prompt == "running" {
					return untilAborted(ctx, who, req, emit)
				}
				return echo(ctx, who, req, emit)
			}
			if other {
				if _, err := h.Status(t.Context(), is); err != nil {
					t.Fatal(err)
				}
			}
			must(t, h.SetPermission(t.Context(), was, cli.Plan, owner))
			running := h.submit(t, was, "running")
			h.awaitAsked(t, 1)
			h.submit(t, was, "waiting")
			for range 2 { // Telegram may report the move again
				must(t, h.MoveChat(t.Context(), was.Chat, is.Chat))
			}
			h.submit(t, was, "late")
			in := is
			if other { // the running turn stays
				in = was
			} else {
				h.submit(t, is, "new")
			}
			if err := h.StopTurn(t.Context(), running.Turn, orchestrator.Press{Conversation: in, Person: 1,
				Role: orchestrator.RoleUser}); err != nil {
				t.Fatal(err)
			}
			h.await(t, "done waiting")
			if other {
				return
			}
			h.await(t, "done new")
			first := h.agent.requests()[0]
			for i, want := range []string{"waiting", "late", "new"} {
				req := h.agent.requests()[i+1]
				if !strings.HasSuffix(req.Prompt, want) || req.Conversation != is.Key() || req.Permission != cli.Plan ||
					req.Session != first.Session {
					t.Errorf("turn %d: %q in %s, %s, session %q; want %q in %s, plan, session %q", i, req.Prompt,
						req.Conversation, req.Permission, req.Session, want, is.Key(), first.Session)
				}
			}
		})
	}
}
