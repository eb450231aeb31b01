package claude

import "ductor/cli"

// ProjectFiles are the files of a project that Claude takes settings from; see cli.ProjectReader. With -p it runs their
// hooks and MCP servers without asking.
func (p *Provider) ProjectFiles() []cli.ProjectFile {
	return []cli.ProjectFile{
		{Glob: ".mcp.json", Kind: cli.ProjectJSON},
		{Glob: ".claude/settings.json", Kind: cli.ProjectJSON},
		{Glob: ".claude/settings.local.json", Kind: cli.ProjectJSON},
		{Glob: ".claude/agents/*.md", Kind: cli.ProjectHeader},
		{Glob: ".claude/commands/*.md", Kind: cli.ProjectHeader},
		{Glob: ".claude/commands/*/*.md", Kind: cli.ProjectHeader},
		{Glob: ".claude/skills/*/SKILL.md", Kind: cli.ProjectHeader},
	}
}
