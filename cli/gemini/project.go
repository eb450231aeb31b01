package gemini

import "ductor/cli"

// ProjectFiles are the files of a project that Gemini takes settings from where it trusts the directory; see
// cli.ProjectReader.
func (p *Provider) ProjectFiles() []cli.ProjectFile {
	return []cli.ProjectFile{
		{Glob: ".gemini/settings.json", Kind: cli.ProjectJSON},
		{Glob: ".gemini/extensions/*/gemini-extension.json", Kind: cli.ProjectJSON},
		{Glob: ".gemini/extensions/*/hooks/hooks.json", Kind: cli.ProjectJSON},
		{Glob: ".gemini/agents/*.md", Kind: cli.ProjectHeader},
		{Glob: ".gemini/.env", Kind: cli.ProjectEnv},
		{Glob: ".env", Kind: cli.ProjectEnv},
	}
}
