package orchestrator

import (
	"context"
	"time"

	"ductor/cli"
)

// warmLimit is how long it may take to settle whom a conversation would ask.
const warmLimit = 15 * time.Second

// warm has the agent opened that the conversation's next prompt will go to, and does not wait for it: what a
// person does before a prompt is time in which an agent can start. A failure shows itself in the turn.
func (o *Orchestrator) warm(ctx context.Context, id ConversationID) {
	if !o.open() {
		return
	}
	go func() {
		defer o.wg.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmLimit)
		defer cancel()
		defer context.AfterFunc(o.life, cancel)()
		who, req, err := o.next(ctx, id)
		if err != nil {
			o.log.Info("no agent is opened ahead", "chat", id.Chat, "topic", id.Topic, "err", err)
			return
		}
		o.opts.Gateway.Warm(who, req)
	}()
}

// next is what the conversation's next turn would ask, without a prompt.
func (o *Orchestrator) next(ctx context.Context, id ConversationID) (cli.Agent, cli.Request, error) {
	conv, err := o.opts.Store.Conversation(ctx, id)
	if err != nil {
		return "", cli.Request{}, err
	}
	session, in, err := o.whereabouts(ctx, conv)
	if err != nil {
		return "", cli.Request{}, err
	}
	who, err := o.choice(ctx, conv, in)
	if err != nil {
		return "", cli.Request{}, err
	}
	req, err := o.request(ctx, conv, session, Turn{Agent: who.agent, Sandbox: in}, who)
	req.Prompt = "" // what the agent missed is told with the turn
	return who.agent, req, err
}
