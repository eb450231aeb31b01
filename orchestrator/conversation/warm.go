package conversation

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// warmLimit limits how long Engine.warm may take to choose an agent.
const warmLimit = 15 * time.Second

// afterAbort is the pause between an abort and the start of the next agent process. The pause leaves time to show the
// end of the turn in the chat first.
const afterAbort = 500 * time.Millisecond

// warm starts the agent process for the next prompt in the background, while the user may still be typing. It ignores
// errors, because the next turn will report them.
func (e *Engine) warm(ctx context.Context, id orchestrator.ConversationID) { e.warmLater(ctx, id, 0) }

// reopen closes the agent process of a conversation if it is idle, and then starts the process for the next prompt.
func (e *Engine) reopen(ctx context.Context, id orchestrator.ConversationID) {
	e.opts.Gateway.Release(id.Key())
	e.warm(ctx, id)
}

func (e *Engine) warmLater(ctx context.Context, id orchestrator.ConversationID, pause time.Duration) {
	e.spawn(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pause+warmLimit)
		defer cancel()
		defer context.AfterFunc(e.life, cancel)()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		who, req, err := e.nextRequest(ctx, id)
		if err != nil {
			e.log.Info("no agent is opened ahead", "chat", id.Chat, "topic", id.Topic, "err", err)
			return
		}
		e.opts.Gateway.Warm(who, req)
	})
}

// nextRequest returns the agent and the request of the next turn. The request has no prompt.
func (e *Engine) nextRequest(ctx context.Context, id orchestrator.ConversationID) (cli.Agent, cli.Request, error) {
	conv, session, in, err := e.next(ctx, id)
	if err != nil {
		return "", cli.Request{}, err
	}
	who, err := e.chooseAgent(ctx, conv, in)
	if err != nil {
		return "", cli.Request{}, err
	}
	req, err := e.request(ctx, conv, session, orchestrator.Turn{Agent: who.Agent, Sandbox: in,
		Entry: orchestrator.Entry{Account: who.Account}}, who)
	return who.Agent, req, err
}
