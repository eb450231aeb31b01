package menu

import (
	"context"

	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// meantModels is the list of models that the user may have meant by a mistyped or ambiguous name. It implements the
// interface choices.
type meantModels struct {
	service Service
	problem *naming.Problem
	current orchestrator.Status
}

func (m meantModels) names() (all []string) {
	for _, c := range m.problem.Meant {
		all = append(all, nameOf(c))
	}
	return all
}

// nameOf returns the name by which users select a model, such as "claude/opus" or "codex high".
func nameOf(c naming.Choice) string {
	name := string(c.Agent)
	if c.Model != "" {
		name += "/" + string(c.Model)
	}
	if c.Effort != "" {
		name += " " + string(c.Effort)
	}
	return name
}

func (m meantModels) label(_ lang.Printer, name string) string { return name }

func (m meantModels) text(p lang.Printer, _ string) string { return whyNot(p, m.problem) }

func (m meantModels) stays(p lang.Printer, _ string) string {
	return choiceText(p, naming.Choice{Agent: m.current.Agent, Model: m.current.Model, Effort: m.current.Effort})
}

func (m meantModels) choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID, name string) (said,
	short string, err error) {
	for _, c := range m.problem.Meant {
		if nameOf(c) == name {
			said, err = setModel(ctx, m.service, p, in, c)
			return said, choiceText(p, c), err
		}
	}
	return "", "", orchestrator.ErrBadChoice
}
