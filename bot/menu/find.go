package menu

import (
	"context"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// Find implements consult.Models. If the name is unknown, Find waits for agents that are still listing their models.
func (k *Menus) Find(ctx context.Context, in orchestrator.ConversationID,
	name string) (naming.Choice, *naming.Problem, error) {
	c, problem, err := k.find(ctx, in, name, "", nil)
	if isUnsettled(problem) {
		return k.find(ctx, in, name, "", problem)
	}
	return c, problem, err
}

// find returns the model with the given name. While agents are still listing their models, find may not know the model
// yet, and then returns a problem. If the caller passes this problem to a second call, that call waits for these
// agents.
func (k *Menus) find(
	ctx context.Context, in orchestrator.ConversationID, name string, current cli.Agent, unsettled *naming.Problem,
) (c naming.Choice, problem *naming.Problem, err error) {
	var entries []cli.MenuEntry
	switch {
	case unsettled == nil:
		entries, err = k.service.MenuNow(ctx, in)
	case unsettled.Agent == "":
		entries, err = k.service.Menu(ctx, in)
	default:
		entries, err = k.service.Menu(ctx, in, unsettled.Agent)
	}
	if err == nil {
		c, problem = naming.Names{Entries: entries, Aliases: k.aliases(), Current: current}.Find(name)
	}
	return c, problem, err
}

func isUnsettled(problem *naming.Problem) bool {
	return problem != nil && problem.Kind == naming.Loading
}

// WhyNot implements consult.Models.
func (k *Menus) WhyNot(p lang.Printer, problem *naming.Problem) string { return whyNot(p, problem) }

// Entries implements consult.Models.
func (k *Menus) Entries(ctx context.Context, in orchestrator.ConversationID) ([]cli.MenuEntry, error) {
	return k.service.Menu(ctx, in)
}
