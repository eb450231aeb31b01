package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"ductor/cli"
	"ductor/cli/claude/skills"
)

const toolSkill = "Skill"

var _ cli.SkillReader = (*Provider)(nil)

// SkillTool implements cli.SkillReader.
func (p *Provider) SkillTool() string { return toolSkill }

// ShowSkill implements cli.SkillReader.
func (p *Provider) ShowSkill(ctx context.Context, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked {
	name := cli.TextsOf(asked.Input)["skill"]
	files, err := p.skillFiles(ctx, req, name)
	if err != nil || len(files) == 0 {
		asked.Missing = cmp.Or(asked.Missing, "where the skill's file is")
		return asked
	}
	text := []string{name}
	for _, f := range files {
		text = append(text, f.Name+":\n"+strings.Trim(f.Text, "\n"))
		for _, command := range cli.ClaudeCommands(f.Text) {
			asked.Fields = append(asked.Fields, cli.Field{Name: "!", Value: command, Weight: cli.WiderField})
		}
	}
	asked.Detail = strings.Join(text, "\n\n")
	return asked
}

// skillFiles returns the files that define a skill. It searches where the agent runs, which may be a container. Without
// the settings of the project, Claude has no skills of the project.
func (p *Provider) skillFiles(ctx context.Context, req cli.Request, name string) (files []skills.File, err error) {
	env, dir := p.environment(req), ""
	if req.Project == cli.WithProject {
		dir = req.Dir
	}
	remote, ok := p.opts.Launcher.(cli.Helper)
	if !ok {
		return skills.Find(func(variable string) string { return cli.Variable(env, variable) }, dir, name)
	}
	raw, err := remote.Help(ctx, env, skills.Verb, dir, name)
	if err != nil {
		return nil, err
	}
	return files, json.Unmarshal(raw, &files)
}
