package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// providers are the enabled agents, in the order they are listed to users.
func (h *house) providers() []cli.Provider {
	a := h.cfg.Agents
	var out []cli.Provider
	if a.Claude.Enabled {
		out = append(out, h.claude(a.Claude))
	}
	if a.Codex.Enabled {
		out = append(out, codex.New(codex.Options{
			Launcher: h.host, Path: a.Codex.Path, Env: os.Environ, AllowEnv: a.Codex.Env, Sandbox: a.Codex.Sandbox,
			Grace: a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log,
		}))
	}
	if a.Gemini.Enabled {
		out = append(out, gemini.New(gemini.Options{
			Launcher: h.host, Path: a.Gemini.Path, Env: os.Environ, AllowEnv: a.Gemini.Env,
			StateDir: filepath.Join(h.cfg.Storage.Dir, geminiDir),
			Grace:    a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log,
		}))
	}
	if a.Copilot.Enabled {
		out = append(out, copilot.New(copilot.Options{
			Launcher: h.host, Path: a.Copilot.Path, Env: os.Environ, AllowEnv: a.Copilot.Env,
			Grace: a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log,
		}))
	}
	for _, name := range slices.Sorted(maps.Keys(a.ACP)) {
		if one := a.ACP[name]; one.Enabled {
			out = append(out, h.acp(cli.Agent(name), one))
		}
	}
	return out
}

func (h *house) claude(c config.Claude) cli.Provider {
	a := h.cfg.Agents
	return claude.New(claude.Options{
		Launcher: h.host, Path: c.Path, Env: os.Environ, AllowEnv: c.Env,
		PromptDir: filepath.Join(h.cfg.Storage.Dir, promptsDir),
		Grace:     a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log, Unasked: h.unasked,
	})
}

// acp is an agent of the owner's own.
func (h *house) acp(name cli.Agent, c config.ACP) cli.Provider {
	a := h.cfg.Agents
	o := acp.Options{
		Agent: name, Path: c.Path, Args: c.Args, Launcher: h.host, Env: os.Environ, AllowEnv: c.Env,
		Grace: a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log,
	}
	for _, m := range c.Models {
		o.Models = append(o.Models, cli.Model{ID: cli.ModelID(m)})
	}
	return acp.New(o)
}

// defaultsOf are what agents are given when nobody chose anything.
func defaultsOf(a config.Agents) map[cli.Agent]orchestrator.AgentDefaults {
	out := map[cli.Agent]orchestrator.AgentDefaults{}
	for name, c := range map[cli.Agent]config.Agent{
		"claude": a.Claude.Agent, "codex": a.Codex.Agent, "gemini": a.Gemini.Agent, "copilot": a.Copilot.Agent,
	} {
		out[name] = orchestrator.AgentDefaults{Model: cli.ModelID(c.Model), Effort: cli.Effort(c.Effort), Args: c.Args}
	}
	for name, c := range a.ACP {
		out[cli.Agent(name)] = orchestrator.AgentDefaults{Model: cli.ModelID(c.Model)}
	}
	return out
}
