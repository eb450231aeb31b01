package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/internal/runner"
	"ductor/mcp"
	"ductor/mcp/relay"
	"ductor/mcp/servers"
)

// serverLookup returns a function that looks up the variables of MCP servers. A stored key of a server overrides
// ductor's environment.
func serverLookup(cfg config.Config) servers.Lookup {
	return func(server, variable string) (string, bool) {
		for _, k := range cfg.Keys {
			if k.Agent == server && k.Name == variable {
				return k.Value.Reveal(), true
			}
		}
		value := os.Getenv(variable)
		return value, value != ""
	}
}

func serverSecrets(cfg config.Config) (all []string) {
	for name, s := range cfg.MCP.Servers {
		all = append(all, s.Secrets(name, serverLookup(cfg))...)
	}
	return all
}

// toolServers contains the servers whose tools agents can use, and the tokens that users have sent for agents.
type toolServers struct {
	own    *mcp.Server      // serves ductor's own tools; nil if disabled
	owners *servers.Checker // checks the configured MCP servers; nil before openServers
	tokens *tokens
}

func (t toolServers) close() {
	if t.owners != nil {
		t.owners.Close()
	}
}

// openServers creates the checker of the configured MCP servers.
func (a *App) openServers() *servers.Checker {
	a.tools.owners = servers.New(servers.Options{
		Servers: a.cfg.MCP.Servers, Lookup: serverLookup(a.cfg), Place: a.placeOfServers, Now: time.Now, Logger: a.Log,
	})
	return a.tools.owners
}

// placeOfServers returns how to start MCP servers in a sandbox, or on this machine if the name of the sandbox is empty.
func (a *App) placeOfServers(in cli.Sandbox) (servers.Place, error) {
	if in == "" {
		return hostPlace(a.cfg, a.host, a.Runner)
	}
	b := a.envs.Sandboxes.Find(in)
	if b == nil {
		return servers.Place{}, fmt.Errorf("the sandbox %s is not configured", in)
	}
	if b.Err != nil {
		return servers.Place{}, b.Err
	}
	path, _ := docker.ToolProgram(relay.ServerVerb)
	return servers.Place{
		Launcher: b.RunLauncher(), Program: []string{path, relay.ServerVerb}, Dir: "/",
		Env: envOfServers(runEnv{inside: true}), Offline: b.Setting.Network == docker.NetworkNone,
	}, nil
}

// hostPlace returns how to start MCP servers on this machine.
func hostPlace(cfg config.Config, launcher cli.Launcher, start runner.Options) (servers.Place, error) {
	path := start.SmallProgram()
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return servers.Place{}, fmt.Errorf("find this program: %w", err)
		}
	}
	return servers.Place{
		Launcher: launcher, Program: []string{path, relay.ServerVerb}, Dir: cfg.Projects.DefaultDir,
		Env: envOfServers(runEnv{}),
	}, nil
}

// envOfServers returns a function that computes the environment of relay.StartServer, the program that starts an MCP
// server.
func envOfServers(g runEnv) func(extra map[string]string) []string {
	return func(extra map[string]string) []string { return cli.ChildEnv(g.environ(), cli.BaseEnv(), extra) }
}

// ServerState is the result of a check of an MCP server on this machine. Problem is empty if the server works.
type ServerState struct{ Name, Problem string }

// ProbeServers checks the configured MCP servers on this machine. Their processes run in a temporary storage directory.
func ProbeServers(ctx context.Context, cfg config.Config) (all []ServerState, err error) {
	if len(cfg.MCP.Servers) == 0 {
		return nil, nil
	}
	err = withProbeHost(cfg, func(cfg config.Config, launcher *host.Launcher, log *slog.Logger) {
		checker := servers.New(servers.Options{
			Servers: cfg.MCP.Servers, Lookup: serverLookup(cfg), Now: time.Now, Logger: log,
			Place: func(cli.Sandbox) (servers.Place, error) { return hostPlace(cfg, launcher, runner.Options{}) },
		})
		defer checker.Close()
		checker.Check("")
		_, absent := checker.For(ctx, cli.Request{}, func(string) bool { return true })
		for _, name := range slices.Sorted(maps.Keys(cfg.MCP.Servers)) {
			state := ServerState{Name: name}
			if i := slices.IndexFunc(absent, func(a cli.AbsentServer) bool { return a.Name == name }); i >= 0 {
				state.Problem = absent[i].Why
			}
			all = append(all, state)
		}
	})
	return all, err
}
