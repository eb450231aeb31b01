package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// ground is a place as the dialects of the agents see it.
type ground struct {
	launcher cli.Launcher
	inside   bool                              // a sandbox: it has neither the paths nor the log-ins of this machine
	readFile func(path string) ([]byte, error) // of log-ins; nil for those of this machine
	owner    string                            // the home of whoever runs ductor, where it is there too
	prompts  string                            // directories that are the same to us and to the agents there
	gemini   string
}

// hostGround is this machine.
func (h *house) hostGround() ground {
	return ground{
		launcher: h.host, owner: ownerHome(),
		prompts: filepath.Join(h.cfg.Storage.Dir, promptsDir), gemini: filepath.Join(h.cfg.Storage.Dir, geminiDir),
	}
}

// program is how an agent is found: in a sandbox by its name alone.
func (g ground) program(path string) string {
	if g.inside && path != "" {
		return filepath.Base(path)
	}
	return path
}

// codexSandbox is what Codex's own sandbox lets its commands do. It cannot make one inside of a container, which has no
// right to make namespaces: there the container is it.
func (g ground) codexSandbox(configured string) string {
	if g.inside {
		return "danger-full-access"
	}
	return configured
}

// environ is what the environments of agents are picked from.
func (g ground) environ() []string {
	if !g.inside {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ownPlaces(), name)
	})
}

// ownPlaces are variables that name directories of this machine in which agents keep what they know.
func ownPlaces() []string {
	return []string{
		"CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SQLITE_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "COPILOT_CACHE_HOME",
		"COPILOT_PKG_CACHE_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_SKILLS_DIRS", "GIT_CONFIG_GLOBAL", "ZDOTDIR",
	}
}

// providers are the enabled agents over a ground, in the order they are listed to users.
func (h *house) providers(g ground) []cli.Provider {
	a := h.cfg.Agents
	var out []cli.Provider
	if a.Claude.Enabled {
		out = append(out, claude.New(claude.Options{
			ProviderOptions: h.dialect(g, a.Claude.Path, a.Claude.Env),
			ReadFile:        g.readFile, PromptDir: g.prompts, OwnerHome: g.owner, Unasked: h.unasked,
		}))
	}
	if a.Codex.Enabled {
		out = append(out, codex.New(codex.Options{
			ProviderOptions: h.dialect(g, a.Codex.Path, a.Codex.Env),
			ReadFile:        g.readFile, Sandbox: g.codexSandbox(a.Codex.Sandbox),
		}))
	}
	if a.Gemini.Enabled {
		out = append(out, gemini.New(gemini.Options{
			ProviderOptions: h.dialect(g, a.Gemini.Path, a.Gemini.Env),
			ReadFile:        g.readFile, StateDir: g.gemini,
		}))
	}
	if a.Copilot.Enabled {
		out = append(out, copilot.New(copilot.Options{
			ProviderOptions: h.dialect(g, a.Copilot.Path, a.Copilot.Env),
			ReadFile:        g.readFile, OwnerHome: g.owner,
		}))
	}
	for _, name := range slices.Sorted(maps.Keys(a.ACP)) {
		if one := a.ACP[name]; one.Enabled {
			out = append(out, h.acp(cli.Agent(name), one, g))
		}
	}
	return out
}

// dialect are the options of the agent at path, which sees the variables that env names besides.
func (h *house) dialect(g ground, path string, env []string) cli.ProviderOptions {
	a := h.cfg.Agents
	return cli.ProviderOptions{
		Launcher: g.launcher, Path: g.program(path), Env: g.environ, AllowEnv: env, Protected: ownFiles(h.cfg),
		Grace: a.Grace, Stall: a.Stall, ToolStall: a.ToolStall, Logger: h.log,
	}
}

// acp is an agent of the owner's own. What it asks ductor to read, write and run would be on this machine, so one in
// a sandbox cannot.
func (h *house) acp(name cli.Agent, c config.ACP, g ground) cli.Provider {
	o := acp.Options{
		ProviderOptions: h.dialect(g, c.Path, c.Env),
		Agent:           name, Args: c.Args, NoFiles: g.inside, NoTerminals: g.inside,
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
