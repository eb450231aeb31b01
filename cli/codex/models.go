package codex

import (
	"context"

	"ductor/cli"
	"ductor/cli/rpc"
)

type modelPage struct {
	Data []struct {
		ID          string `json:"id"`
		DisplayName string `json:"displayName"`
		Description string `json:"description"`
		Hidden      bool   `json:"hidden"`
		IsDefault   bool   `json:"isDefault"`
		Default     string `json:"defaultReasoningEffort"`
		Efforts     []struct {
			Effort string `json:"reasoningEffort"`
		} `json:"supportedReasoningEfforts"`
	} `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// maxModelPages is the maximum number of pages that Models reads. A broken server might send pages without end.
const maxModelPages = 20

// Models implements cli.Provider. It queries `codex app-server`.
func (p *Provider) Models(ctx context.Context) ([]cli.Model, error) {
	var models []cli.Model
	err := p.inquire(ctx, func(c *rpc.Peer) error {
		params := map[string]any{}
		for range maxModelPages {
			var page modelPage
			if err := c.Call(ctx, "model/list", params, &page); err != nil {
				return err
			}
			models = append(models, page.models()...)
			if page.NextCursor == nil || *page.NextCursor == "" {
				return nil
			}
			params["cursor"] = *page.NextCursor
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return models, nil
}

func (page modelPage) models() []cli.Model {
	var models []cli.Model
	for _, m := range page.Data {
		if m.Hidden {
			continue
		}
		model := cli.Model{
			Agent: Agent, ID: cli.ModelID(m.ID), Name: m.DisplayName, Description: m.Description,
			DefaultEffort: cli.Effort(m.Default), Default: m.IsDefault,
		}
		for _, e := range m.Efforts {
			model.Efforts = append(model.Efforts, cli.Effort(e.Effort))
		}
		models = append(models, model)
	}
	return models
}

// Commands implements cli.Commander. It lists the skills that Codex finds in the thread's directory. A prompt uses a
// skill by a dollar sign and the skill's name.
func (s *thread) Commands(ctx context.Context) ([]cli.AgentCommand, error) {
	params := map[string]any{}
	if dir := s.dir; dir != "" {
		params["cwds"] = []string{dir}
	}
	var reply struct {
		Data []struct {
			Skills []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Enabled     *bool  `json:"enabled"`
			} `json:"skills"`
		} `json:"data"`
	}
	if err := s.server.Peer().Call(ctx, "skills/list", params, &reply); err != nil {
		return nil, s.server.broken(err)
	}
	var list []cli.AgentCommand
	for _, at := range reply.Data {
		for _, skill := range at.Skills {
			if skill.Enabled == nil || *skill.Enabled {
				list = append(list, cli.AgentCommand{Name: "$" + skill.Name, Description: skill.Description})
			}
		}
	}
	return list, nil
}
