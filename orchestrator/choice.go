package orchestrator

import (
	"cmp"
	"context"

	"ductor/cli"
)

// choice is who answers a turn.
type choice struct {
	agent  cli.Agent
	model  cli.ModelID
	effort cli.Effort
}

// choice settles who answers in a place: what the conversation chose, else its role, else the configured default. A
// model chosen for one agent is never handed to another.
func (o *Orchestrator) choice(ctx context.Context, conv Conversation, in cli.Sandbox) (choice, error) {
	role := o.opts.Roles[o.roleOf(conv)]
	who := choice{agent: conv.Agent, model: conv.Model, effort: conv.Effort}
	if who.agent == "" {
		who = choice{agent: role.Agent, model: role.Model}
	}
	if who.agent == "" {
		agent, err := o.opts.Gateway.Default(ctx, in)
		if err != nil {
			return choice{}, err
		}
		who.agent = agent
	}
	own := o.opts.Agents[who.agent]
	who.model, who.effort = cmp.Or(who.model, own.Model), cmp.Or(who.effort, own.Effort)
	return who, nil
}
