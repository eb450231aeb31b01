package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/claude"
	"ductor/cli/codex"
	"ductor/cli/copilot"
	"ductor/cli/gemini"
	"ductor/cli/host"
	"ductor/cli/service"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/keys"
	"ductor/internal/runner"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// runEnv describes an environment for agents: this machine or a sandbox.
type runEnv struct {
	name     string // the sandbox; empty for this machine
	launcher cli.Launcher
	// inside is true for a sandbox. A sandbox has neither the paths nor the log-ins of this machine.
	inside   bool
	readFile func(path string) ([]byte, error) // reads a file's copy in the sandbox; nil for this machine
	// owner is the home directory of the user who runs ductor, or "" if the environment does not contain it.
	owner   string
	prompts string // directory for system prompts; agents in the environment see it under the same path
	gemini  string
	// protected contains ductor's own files in the environment; see ownFiles.
	protected []string
}

// agents creates the providers (implementations of cli.Provider) for the configured agents.
type agents struct {
	cfg        config.Config
	log        *slog.Logger
	background func(cli.Conversation, cli.BackgroundResult) // receives the results of background tasks
	tokens     *tokens                                      // tokens that users sent after the start; may be nil
	spent      func(context.Context, cli.AgentSessionID) *float64
}

func (a *App) agents(cfg config.Config) agents {
	return agents{cfg, a.Log, a.onBackground, a.tools.tokens, a.spent}
}

// spent implements acp.Options.Spent.
func (a *App) spent(ctx context.Context, id cli.AgentSessionID) *float64 {
	usd, err := a.db.Spent(ctx, id)
	// After an error, the result is nil, and ductor counts no cost for this turn.
	if err != nil {
		a.Log.Warn("load what a session has cost", "session", id, "err", err)
	}
	return usd
}

// hostEnv returns the environment of agents on this machine.
func (a agents) hostEnv(launcher cli.Launcher) runEnv {
	return runEnv{
		launcher: launcher, owner: environment.OwnerHome(),
		prompts: filepath.Join(a.cfg.Storage.Dir, environment.PromptsDir),
		gemini:  filepath.Join(a.cfg.Storage.Dir, environment.GeminiDir), protected: ownFiles(a.cfg),
	}
}

func (a agents) sandboxEnv(b *environment.Sandbox) runEnv {
	return runEnv{
		name: b.Name, launcher: b.RunLauncher(), inside: true, readFile: b.ReadFile,
		prompts: filepath.Join(a.cfg.Storage.Dir, environment.PromptsDir),
		gemini:  filepath.Join(a.cfg.Storage.Dir, environment.GeminiDir), protected: ownFiles(a.cfg),
	}
}

// runEnvOf returns the service.RunEnv of a sandbox, with providers for its agents.
func (a agents) runEnvOf(b *environment.Sandbox) service.RunEnv {
	g := a.sandboxEnv(b)
	return service.RunEnv{Sandbox: cli.Sandbox(b.Name), Launcher: g.launcher, Homes: b.Homes(),
		Providers: a.providers(g)}
}

// runEnvs returns the service.RunEnv of each open sandbox.
func (a *App) runEnvs() (all []service.RunEnv) {
	for _, b := range a.envs.Sandboxes.All() {
		a.serveSandbox(b)
		all = append(all, a.agents(a.cfg).runEnvOf(b))
	}
	return all
}

// openRunEnv returns the service.RunEnv of a sandbox. If the sandbox belongs to a single conversation, openRunEnv opens
// the sandbox first. It returns false if the configuration does not contain the sandbox.
func (a *App) openRunEnv(in cli.Sandbox) (service.RunEnv, bool) {
	b := a.envs.Sandboxes.Find(in)
	if b == nil {
		return service.RunEnv{}, false
	}
	a.serveSandbox(b)
	return a.agents(a.now().Config).runEnvOf(b), true
}

// program returns the path of an agent's program. For a sandbox, it returns only the name of the program, because the
// sandbox has its own PATH.
func (g runEnv) program(path string) string {
	if g.inside && path != "" {
		return filepath.Base(path)
	}
	return path
}

// codexSandbox returns the mode of Codex's own sandbox. In a container, it disables Codex's sandbox, which needs
// namespaces and cannot work there. The container protects the machine instead.
func (g runEnv) codexSandbox(configured string) string {
	if g.inside {
		return "danger-full-access"
	}
	return configured
}

// environ returns the variables that agents may inherit. In a sandbox, it omits hostVariables.
func (g runEnv) environ() []string {
	if !g.inside {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(hostVariables(), name)
	})
}

// hostVariables returns the names of variables whose values are directories of this machine. Agents store their state
// in these directories.
func hostVariables() []string {
	return []string{
		"CLAUDE_CONFIG_DIR", "CODEX_HOME", "CODEX_SQLITE_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "COPILOT_CACHE_HOME",
		"COPILOT_PKG_CACHE_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_SKILLS_DIRS", "GIT_CONFIG_GLOBAL",
		"ZDOTDIR",
	}
}

// providers returns a provider for each enabled agent in an environment, in the order in which users see them.
func (a agents) providers(g runEnv) (out []cli.Provider) {
	for _, name := range a.cfg.Agents.Names() {
		if a.cfg.Agents.Enabled(name) {
			out = append(out, a.provider(g, cli.Agent(name), cli.AccountHome{}))
		}
	}
	return out
}

// accounts returns a provider for each additional account of each enabled agent on this machine. It creates the
// accounts' home directories.
func (a agents) accounts(g runEnv) (out []service.AccountProvider) {
	for _, name := range a.cfg.Agents.Names() {
		accounts := a.cfg.Agents.Accounts(name)
		for _, account := range slices.Sorted(maps.Keys(accounts)) {
			home := cli.AccountHome{Account: cli.Account(account), Dir: accounts[account].Home,
				AccountVars: a.accountVars(name)}
			if !a.cfg.Agents.Enabled(name) {
				continue
			}
			if err := os.MkdirAll(home.Dir, 0o700); err != nil {
				a.log.Error("make the home of an account", "agent", name, "account", account, "err", err)
			}
			out = append(out, service.AccountProvider{
				AccountHome: home, Provider: a.provider(g, cli.Agent(name), home),
			})
		}
	}
	return out
}

// accountVars returns the variable that selects an agent's account, and the variables that would override this
// selection.
func (a agents) accountVars(name string) cli.AccountVars {
	vars := cli.AccountVars{Home: a.cfg.Agents.AccountVariable(name)}
	// An ACP agent may start Claude, Codex, Gemini or Copilot. Such an agent also needs the variables of the program
	// that it starts.
	vars.Leads = map[string][]string{
		"CLAUDE_CONFIG_DIR": claude.LoginVars(), "CODEX_HOME": codex.LoginVars(), "GEMINI_CLI_HOME": gemini.LoginVars(),
		"COPILOT_HOME": copilot.LoginVars(),
	}[vars.Home]
	if s, ok := a.cfg.Agents.ACP[name]; ok {
		e, _ := acp.EntryOf(s.Path)
		vars.Leads = slices.Concat(vars.Leads, e.Keys, secretVariables())
	}
	return vars
}

// secretVariables returns the names of ductor's environment variables that probably contain secrets. ductor does not
// know which variables an ACP agent reads. The caller must assume that the agent reads all of these.
func secretVariables() (names []string) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); secrets.IsName(name) {
			names = append(names, name)
		}
	}
	return names
}

// provider returns the provider of an agent in an environment, for one of the agent's accounts.
func (a agents) provider(g runEnv, name cli.Agent, home cli.AccountHome) cli.Provider {
	own := a.cfg.Agents.Own()[name]
	o := a.providerOptions(g, name, home, own.Path, own.Env)
	switch name {
	case "claude":
		return claude.New(claude.Options{ProviderOptions: o, PromptDir: g.prompts, Background: a.background})
	case codex.Agent:
		return codex.New(codex.Options{ProviderOptions: o, Sandbox: g.codexSandbox(a.cfg.Agents.Codex.Sandbox)})
	case gemini.Agent:
		return gemini.New(gemini.Options{ProviderOptions: o, StateDir: g.gemini, StartDir: a.startDir()})
	case copilot.Agent:
		return copilot.New(copilot.Options{ProviderOptions: o})
	}
	c := a.cfg.Agents.ACP[string(name)]
	memory := a.loginMemory(g, home.Account.Of(name))
	return a.acp(name, c, g, memory, a.providerOptions(g, name, home, c.Path, c.Env))
}

// renewed returns the providers of an environment after a reload of the configuration. The caller passes the previous
// configuration and its providers. Only ACP agents can change without a restart, so renewed creates a new provider for
// an ACP agent if its settings or keys have changed. All other providers stay.
func (a agents) renewed(g runEnv, before config.Config, present []cli.Provider) []cli.Provider {
	all := a.providers(g)
	for i, p := range all {
		name := string(p.Agent())
		was, there := before.Agents.ACP[name]
		if now, acp := a.cfg.Agents.ACP[name]; acp != there || !reflect.DeepEqual(was, now) ||
			acp && !slices.Equal(keysOf(before, name), keysOf(a.cfg, name)) {
			continue
		}
		if j := slices.IndexFunc(present, func(q cli.Provider) bool { return q.Agent() == p.Agent() }); j >= 0 {
			all[i] = present[j]
		}
	}
	return all
}

// keysOf returns the stored keys of an agent, for all its accounts.
func keysOf(cfg config.Config, name string) []keys.Key {
	return slices.DeleteFunc(slices.Clone(cfg.Keys), func(k keys.Key) bool {
		agent, _, _ := strings.Cut(k.Agent, "@")
		return agent != name
	})
}

// providerOptions returns the options that every kind of agent has. The agent gets the given variables and the stored
// keys of the account.
func (a agents) providerOptions(g runEnv, name cli.Agent, home cli.AccountHome, path string,
	env []string) cli.ProviderOptions {
	var keys []string
	of := home.Account.Of(name)
	if home.Home != "" {
		env = append(slices.Clone(env), home.Home)
	}
	for _, k := range a.cfg.Keys {
		if k.Agent == of {
			keys, env = append(keys, k.Name+"="+k.Value.Reveal()), append(slices.Clone(env), k.Name)
		}
	}
	return cli.ProviderOptions{
		Launcher: g.launcher, Path: g.program(path), AllowEnv: env,
		Env:      func() []string { return slices.Concat(home.Environ(g.environ()), keys, a.tokens.environ(of)) },
		ReadFile: g.readFile, OwnerHome: g.owner, Protected: g.protected,
		Timing: a.cfg.Agents.Timing, Logger: a.log,
	}
}

func (a agents) startDir() string { return filepath.Join(a.cfg.Storage.Dir, environment.ProbesDir) }

// acp returns the provider of an ACP agent. An agent in a sandbox may not use ductor's file and terminal methods,
// because these would use the files and processes of this machine.
func (a agents) acp(name cli.Agent, c acp.Settings, g runEnv, memory loginMemory,
	common cli.ProviderOptions) cli.Provider {
	o := acp.Options{
		ProviderOptions: common,
		Agent:           name, Args: c.Args, Holds: c.Holds, Project: c.Project, NoWorkspace: g.inside,
		StartDir:   a.startDir(),
		Background: a.background, Programs: gemini.Programs(), Resuming: gemini.Guard(g.launcher),
		AuthMethod: c.AuthMethod, Spent: a.spent, Memory: memory,
	}
	for _, m := range c.Models {
		o.Models = append(o.Models, cli.Model{ID: m})
	}
	return acp.New(o)
}

func defaultsOf(agents config.Agents) map[cli.Agent]orchestrator.AgentDefaults {
	defaults := map[cli.Agent]orchestrator.AgentDefaults{}
	for name, c := range agents.Own() {
		defaults[name] = c.AgentDefaults
	}
	for name, c := range agents.ACP {
		defaults[cli.Agent(name)] = orchestrator.AgentDefaults{Model: c.Model}
	}
	return defaults
}

// SandboxAgents returns the providers of the agents in a sandbox.
func SandboxAgents(cfg config.Config, b *environment.Sandbox) []cli.Provider {
	return agents{cfg: cfg, log: slog.New(slog.DiscardHandler)}.runEnvOf(b).Providers
}

// RunsPath returns the directory for the runs of agents on this machine.
func RunsPath(cfg config.Config) string { return filepath.Join(cfg.Storage.Dir, runsDir) }

// endSupervised ends the agents of an old version of ductor, which stored its runs in oldRunsDir. It starts a runner in
// this directory, because a runner ends each run that has files in an unknown format. ductor then shows the turns of
// these agents as interrupted.
func endSupervised(ctx context.Context, cfg config.Config, start runner.Options) error {
	dir := filepath.Join(cfg.Storage.Dir, oldRunsDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	runs, err := runner.Open(dir, start)
	if err == nil {
		_, err = runs.List(ctx)
		err = errors.Join(err, runs.Close())
	}
	if err != nil {
		return fmt.Errorf("end agents of an older ductor: %w", err)
	}
	return os.RemoveAll(dir)
}

func openHost(cfg config.Config, start runner.Options, log *slog.Logger) (*host.Launcher, error) {
	start.Upgrade = true
	return host.Open(host.Options{
		Dir: RunsPath(cfg), Runner: start, Timing: cfg.Agents.Timing, Logger: log,
	})
}
