package copilot

import "ductor/cli"

// ProjectFiles are the files of a project that Copilot takes settings from, those of other agents among them; see
// cli.ProjectReader.
func (p *Provider) ProjectFiles() []cli.ProjectFile {
	return []cli.ProjectFile{
		{Glob: ".github/hooks/*.json", Kind: cli.ProjectJSON},
		{Glob: ".github/copilot/settings.json", Kind: cli.ProjectJSON},
		{Glob: ".github/copilot/settings.local.json", Kind: cli.ProjectJSON},
		{Glob: ".github/mcp.json", Kind: cli.ProjectJSON},
		{Glob: ".github/agents/*.md", Kind: cli.ProjectHeader},
		{Glob: ".copilot/mcp-config.json", Kind: cli.ProjectJSON},
		{Glob: ".mcp.json", Kind: cli.ProjectJSON},
		{Glob: ".vscode/mcp.json", Kind: cli.ProjectJSON},
		{Glob: ".claude/settings.json", Kind: cli.ProjectJSON},
		{Glob: ".claude/settings.local.json", Kind: cli.ProjectJSON},
	}
}
