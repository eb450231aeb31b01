package conversation_test

import (
	"fmt"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// pickyGateway is a gateway that cannot run codex with a forbidden tool or with a limit of answers, and that has no
// account "gone".
type pickyGateway struct{ orchestrator.Gateway }

func (pickyGateway) CannotHold(agent cli.Agent, req cli.Request) *cli.Failure {
	for _, l := range req.ToolLists {
		if agent == "codex" && len(l.Denied) > 0 {
			return &cli.Failure{Reason: "it can't do without a tool"}
		}
	}
	if agent == "codex" && req.MaxTurns > 0 {
		return &cli.Failure{Reason: "it doesn't count its answers"}
	}
	if req.Accounts[agent] == "gone" {
		return &cli.Failure{Reason: "it has no such account"}
	}
	return nil
}

// A resumed session can change the agent and the account of the conversation. It changes nothing that the conversation
// cannot use, and resets the model only with another agent.
func TestAResumedSessionBringsItsAgent(t *testing.T) {
	const chosen = "claude opus high"
	for _, c := range []struct {
		name   string
		as     orchestrator.AgentEnv
		before string
		change func(*conversation.Options)
		want   string
	}{
		{"no clear agent", orchestrator.AgentEnv{}, chosen, nil, chosen + " map[]"},
		{"the same agent", orchestrator.AgentEnv{Agent: "claude"}, chosen, nil, chosen + " map[]"},
		{"the default agent", orchestrator.AgentEnv{Agent: "claude"}, "", nil, "   map[]"},
		{"another agent", orchestrator.AgentEnv{Agent: "codex"}, chosen, nil, "codex   map[]"},
		{"another account", orchestrator.AgentEnv{Agent: "claude", Account: "work"}, chosen, nil,
			chosen + " map[claude:work]"},
		{"an account that is gone", orchestrator.AgentEnv{Agent: "codex", Account: "gone"}, chosen, nil,
			chosen + " map[]"},
		{"a forbidden tool", orchestrator.AgentEnv{Agent: "codex", Account: "work"}, chosen,
			func(o *conversation.Options) { o.DeniedTools = []string{"web"} }, chosen + " map[]"},
		{"a limit of the project", orchestrator.AgentEnv{Agent: "codex"}, chosen, func(o *conversation.Options) {
			o.Projects = []orchestrator.ProjectPolicy{{Dir: o.Dir, Bounds: orchestrator.Bounds{MaxTurns: 3}}}
		}, chosen + " map[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openAt(t, newPath(t), func(o *conversation.Options) {
				o.Gateway = pickyGateway{o.Gateway}
				if c.change != nil {
					c.change(o)
				}
			})
			h.submit(t, here, "first")
			h.await(t, "done first")
			must(t, h.New(t.Context(), here))
			if c.before != "" {
				must(t, h.SetModel(t.Context(), here, "claude", "opus", "high"))
			}
			all, err := h.Sessions(t.Context(), here)
			must(t, err)
			if err := h.Resume(t.Context(), all[0], c.as); err != nil {
				t.Fatal(err)
			}
			conv, err := h.db.Conversation(t.Context(), here)
			must(t, err)
			got := fmt.Sprint(conv.Agent, " ", conv.Model, " ", conv.Effort, " ", conv.Settings.Accounts)
			if got != c.want || conv.Session != all[0].ID {
				t.Errorf("the conversation has %q in session %s, want %q", got, conv.Session, c.want)
			}
		})
	}
}
