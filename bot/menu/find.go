package menu

import (
	"context"
	"slices"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Find finds the model that a name means for a conversation; the problem says why it is none. It waits for agents to list their models
// only where those that have do not settle it.
func (k *Menus) Find(ctx context.Context, in orchestrator.ConversationID, name string) (naming.Choice, *naming.Problem, error) {
	entries, err := k.service.MenuNow(ctx, in)
	if err != nil {
		return naming.Choice{}, nil, err
	}
	if c, ok := (naming.Names{Entries: entries, Aliases: k.aliases()}).Exactly(name); ok {
		return c, nil, nil
	}
	if slices.ContainsFunc(entries, isLoading) {
		if entries, err = k.service.Menu(ctx, in); err != nil {
			return naming.Choice{}, nil, err
		}
	}
	c, problem := naming.Names{Entries: entries, Aliases: k.aliases()}.Find(name)
	return c, problem, nil
}

// WhyNot says in the chat why a name is no choice.
func (k *Menus) WhyNot(p lang.Printer, problem *naming.Problem) string { return whyNot(p, problem) }

// Entries lists the agents that a conversation can use and their models. It waits for agents to list them.
func (k *Menus) Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	return k.service.Menu(ctx, in)
}
