package menu

import (
	"context"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Find finds the model that a name means for a conversation; the problem says why it is none. It waits for agents to list their models
// only where those that have do not settle it.
func (k *Menus) Find(ctx context.Context, in orchestrator.ConversationID, name string) (naming.Choice, *naming.Problem, error) {
	c, problem, err := k.findNow(ctx, in, name, "")
	if err == nil && isUnsettled(problem) {
		return k.findAfter(ctx, in, name, "", problem)
	}
	return c, problem, err
}

// findNow finds a model by what is known of the agents; isUnsettled of the problem means that it takes one that is being asked.
func (k *Menus) findNow(ctx context.Context, in orchestrator.ConversationID, name string, current cli.Agent) (naming.Choice, *naming.Problem, error) {
	entries, err := k.service.MenuNow(ctx, in)
	if err != nil {
		return naming.Choice{}, nil, err
	}
	c, problem := naming.Names{Entries: entries, Aliases: k.aliases(), Current: current}.Find(name)
	return c, problem, nil
}

func isUnsettled(problem *naming.Problem) bool {
	return problem != nil && problem.Kind == naming.Loading
}

// findAfter finds a model once the agents have answered that it takes.
func (k *Menus) findAfter(ctx context.Context, in orchestrator.ConversationID, name string, current cli.Agent, takes *naming.Problem) (naming.Choice, *naming.Problem, error) {
	var only []cli.Agent
	if takes.Agent != "" {
		only = append(only, takes.Agent)
	}
	entries, err := k.service.Menu(ctx, in, only...)
	if err != nil {
		return naming.Choice{}, nil, err
	}
	c, problem := naming.Names{Entries: entries, Aliases: k.aliases(), Current: current}.Find(name)
	return c, problem, nil
}

// WhyNot says in the chat why a name is no choice.
func (k *Menus) WhyNot(p lang.Printer, problem *naming.Problem) string { return whyNot(p, problem) }

// Entries lists the agents that a conversation can use and their models. It waits for agents to list them.
func (k *Menus) Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	return k.service.Menu(ctx, in)
}
