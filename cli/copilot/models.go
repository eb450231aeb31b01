package copilot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// modelList is the response to models.list.
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

// Models implements cli.Provider. If the user has configured another model provider than GitHub, it returns only the
// model in COPILOT_MODEL, because Copilot does not query such a provider.
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

// models returns the models that users can choose. defaultModel is the configured default. If it is empty, the first
// model is the default.
func (l modelList) models(defaultModel cli.ModelID) []cli.Model {
	var models []cli.Model
	for _, m := range l.Models {
		if m.Policy.State == "disabled" {
			continue
		}
		model := cli.Model{
			Agent: Agent, ID: cli.ModelID(m.ID), Name: m.Name, Description: m.Vendor, DefaultEffort: cli.Effort(m.Default),
			Default: cli.ModelID(m.ID) == defaultModel,
		}
		for _, e := range m.Efforts {
			model.Efforts = append(model.Efforts, cli.Effort(e))
		}
		models = append(models, model)
	}
	if defaultModel == "" && len(models) > 0 {
		models[0].Default = true
	}
	return models
}

// prompting lists those of Copilot's own commands that only convert the text after them to a prompt. Other commands
// change the permissions of the session, such as /allow-all, or work only in Copilot's own terminal.
var prompting = []string{"blame", "init", "research", "review", "security-review"}

const kindSkill = "skill"

// command is a command of Copilot. Its schema is SlashCommandInfo in api.schema.json.
type command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Kind        string `json:"kind"`
	Input       struct {
		Hint string `json:"hint"`
	} `json:"input"`
}

// listed returns the session's skills, and those of its commands that only create a prompt.
func (h *server) listed(ctx context.Context, id cli.AgentSessionID) ([]command, error) {
	var reply struct {
		Commands []command `json:"commands"`
	}
	params := map[string]any{"sessionId": id, "includeBuiltins": true, "includeSkills": true, "includeClientCommands": false}
	if err := h.call(ctx, "session.commands.list", params, &reply); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(reply.Commands, func(c command) bool {
		return c.Kind != kindSkill && !slices.Contains(prompting, c.Name)
	}), nil
}

// Commands implements cli.Commander. It lists only commands and skills that create a prompt.
func (s *session) Commands(ctx context.Context) ([]cli.AgentCommand, error) {
	all, err := s.server.listed(ctx, s.id)
	if err != nil {
		return nil, callFailure(err)
	}
	var list []cli.AgentCommand
	for _, c := range all {
		list = append(list, cli.AgentCommand{Name: "/" + c.Name, Description: c.Description, Arguments: c.Input.Hint})
	}
	return list, nil
}

// expand returns the prompt that a command creates. It rejects commands that do not create a prompt, because they would
// take effect at once.
func (h *server) expand(ctx context.Context, id cli.AgentSessionID, line string) (string, error) {
	name, input, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	all, err := h.listed(ctx, id)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, func(c command) bool { return c.Name == name }) {
		return "", cli.Failf(cli.Refused, Agent, "it has no command /%s that makes a prompt", name)
	}
	var reply struct {
		Kind   string `json:"kind"`
		Prompt string `json:"prompt"`
	}
	if err := h.call(ctx, "session.commands.invoke", map[string]any{"sessionId": id, "name": name, "input": strings.TrimSpace(input)}, &reply); err != nil {
		return "", err
	}
	if reply.Kind != "agent-prompt" || reply.Prompt == "" {
		return "", cli.Failf(cli.Refused, Agent, "its command /%s made no prompt", name)
	}
	return reply.Prompt, nil
}
