package conversation

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// loginWait limits the time for a log-in. The codes of the agents expire in the same time.
const loginWait = 15 * time.Minute

// logIn logs in the agent of a turn. It sends the code and the result to the private chat of the owner.
func (e *Engine) logIn(ctx context.Context, t orchestrator.Turn) error {
	agent, in, p := t.Outcome.Recovery.Who, t.Sandbox, e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	if agent == "" || e.opts.Owner == 0 || !e.opts.Gateway.CanLogIn(in, agent) {
		return orchestrator.ErrBadChoice
	}
	if _, runs := e.logins.LoadOrStore(orchestrator.AgentEnv{Agent: agent, Sandbox: in}, true); runs {
		return nil
	}
	if !e.open() {
		return orchestrator.ErrShutdown
	}
	owner := orchestrator.ConversationID{Chat: int64(e.opts.Owner)}
	tell := func(text string) {
		if err := e.opts.Chat.Notice(context.WithoutCancel(ctx), owner, text); err != nil {
			e.log.Warn("notify the owner of a log-in", "agent", agent, "err", err)
		}
	}
	go func() {
		defer e.wg.Done()
		defer e.logins.Delete(orchestrator.AgentEnv{Agent: agent, Sandbox: in})
		ctx, cancel := context.WithTimeout(e.life, loginWait)
		defer cancel()
		err := e.opts.Gateway.LogIn(ctx, in, agent,
			func(d cli.DeviceCode) { tell(p.Text("turn.log-in", d.Agent.Name(), d.URL, d.Code)) })
		switch {
		case err == nil:
			tell(p.Text("turn.logged-in", agent.Name()))
		case e.life.Err() == nil:
			e.log.Warn("log an agent in", "agent", agent, "err", err)
			tell(p.Text("turn.not-logged-in", agent.Name(), cli.ShortLine(err.Error())))
		}
	}()
	return nil
}
