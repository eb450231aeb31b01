package copilot

import (
	"context"
	"errors"
	"fmt"

	"ductor/cli"
)

// modelList is the answer to models.list.
type modelList struct {
	Models []struct {
		ID      string   `json:"id"`
		Name    string   `json:"name"`
		Vendor  string   `json:"vendor"`
		Efforts []string `json:"supportedReasoningEfforts"`
		Default string   `json:"defaultReasoningEffort"`
		Policy  struct {
			State string `json:"state"`
		} `json:"policy"`
	} `json:"models"`
}

// Models asks Copilot for what the account may use. With a provider of the owner's own there is the one model that
// COPILOT_MODEL names: Copilot does not ask such a provider what it has.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) {
	env := p.environment(cli.Request{})
	if cli.Variable(env, "COPILOT_PROVIDER_BASE_URL") != "" {
		model := modelOf(cli.Request{}, env)
		if model == "" {
			return nil, errors.New("COPILOT_PROVIDER_BASE_URL is set, and COPILOT_MODEL is not: name a model")
		}
		return []cli.Model{{Agent: Agent, ID: model, Name: string(model), Description: "from your own provider", Default: true}}, nil
	}
	var list modelList
	err := p.inquire(ctx, "models.list", struct{}{}, &list)
	if err != nil {
		return nil, fmt.Errorf("ask Copilot for its models: %w", err)
	}
	return list.models(cli.ModelID(cli.Variable(env, "COPILOT_MODEL"))), nil
}

// models are those that can be picked; the first is Copilot's own choice unless another is set.
func (l modelList) models(chosen cli.ModelID) []cli.Model {
	var models []cli.Model
	for _, m := range l.Models {
		if m.Policy.State == "disabled" {
			continue
		}
		model := cli.Model{
			Agent: Agent, ID: cli.ModelID(m.ID), Name: m.Name, Description: m.Vendor, DefaultEffort: cli.Effort(m.Default),
			Default: cli.ModelID(m.ID) == chosen,
		}
		for _, e := range m.Efforts {
			model.Efforts = append(model.Efforts, cli.Effort(e))
		}
		models = append(models, model)
	}
	if chosen == "" && len(models) > 0 {
		models[0].Default = true
	}
	return models
}
