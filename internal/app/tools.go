package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/cli/naming"
	"ductor/docker"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/statesocket"
	"ductor/mcp"
	"ductor/mcp/relay"
	"ductor/orchestrator"
	"ductor/orchestrator/sessions"
	"ductor/orchestrator/steps"
)

// openSockets opens the servers for local programs. Their sockets reject agents and the processes of agents.
func (a *App) openSockets(book orchestrator.Sessions) error {
	guard, err := statesocket.OpenGuard(a.cfg.Storage.Dir, host.Descends)
	if err != nil {
		return err
	}
	a.openTerminals(guard)
	return a.openTools(book, guard)
}

// openTools opens the server of ductor's own tools, if it is enabled.
func (a *App) openTools(book orchestrator.Sessions, guard statesocket.Guard) (err error) {
	if !a.cfg.MCP.Enabled {
		return nil
	}
	files := a.files()
	a.tools.own, err = mcp.Open(mcp.Options{
		Dir: a.cfg.Storage.Dir, Version: a.Version, Turns: a.orchestrator, Chat: a.bot.Chat(), Audit: a.db,
		Sessions: book, Steps: steps.Reader{Store: a.db}, Jobs: a.timers.scheduler,
		Files: a.bot.Chat(), Place: files.OfTurn, ReadFile: files.Read, Consults: a.consults,
		FindModel: a.findModel, Roles: a.orchestrator,
		Outside: mcp.Outside{Turns: a.orchestrator, Guard: guard,
			Owner: func() orchestrator.PersonID { return ownerOf(a.now().Config) }},
		Patience: toolPatience(a.cfg.Agents), Now: time.Now, NewID: newID, Log: a.Log,
	})
	return err
}

// access returns the rules by which an agent may read sessions.
func (a *App) access() sessions.Access {
	return sessions.Access{
		RoleOf: a.users.RoleOf,
		Groups: func() []int64 { return a.now().Telegram.AllowedGroups },
		Shared: func() (dirs, except []string) {
			for _, p := range a.now().Projects.Named {
				if p.ShareSessions {
					dirs = append(dirs, p.Dir)
				} else {
					except = append(except, p.Dir)
				}
			}
			return dirs, except
		},
	}
}

// toolPatience returns the time limit of a call of ductor's tools. The limit is a little shorter than the setting
// ToolStall. After ToolStall, ductor would end the whole turn.
func toolPatience(agents config.Agents) time.Duration {
	return agents.ToolStall - min(agents.ToolStall/10, time.Minute)
}

func (a *App) serveTools(ctx context.Context) {
	if err := a.tools.own.Serve(ctx); err != nil {
		a.Log.Error("serve ductor's tools to agents", "err", err)
	}
}

// toolServers returns the MCP server with ductor's tools. The agent starts this server as a program.
func (a *App) toolServers(in orchestrator.ConversationID, env orchestrator.AgentEnv) []cli.ToolServer {
	if a.tools.own == nil {
		return nil
	}
	server := cli.ToolServer{
		Name: mcp.Name, Trusted: true, Timeout: toolPatience(a.cfg.Agents),
		Env: map[string]string{relay.TokenVar: a.tools.own.Token(in, env)},
	}
	if env.Sandbox != "" {
		server.Path, server.Args = docker.ToolProgram(relay.Verb)
		return []cli.ToolServer{server}
	}
	if server.Path = a.Runner.SmallProgram(); server.Path == "" {
		var err error
		if server.Path, err = os.Executable(); err != nil {
			a.Log.Warn("offer ductor's tools to an agent", "err", fmt.Errorf("find this program: %w", err))
			return nil
		}
	}
	server.Args, server.Env[relay.DirVar] = []string{relay.Verb}, a.cfg.Storage.Dir
	return []cli.ToolServer{server}
}

// serveSandbox serves ductor's tools to agents in a sandbox, through the connection to the sandbox's runner.
func (a *App) serveSandbox(b *environment.Sandbox) {
	if b.Launcher != nil && a.cfg.MCP.Enabled {
		// The context can be context.Background(), because ServeConn returns when the connection ends.
		b.Launcher.Runs().ServeTools(func(conn net.Conn) {
			a.tools.own.ServeConn(context.Background(), conn, cli.Sandbox(b.Name))
		})
	}
}

// findModel finds the model that an agent has named in a tool call.
func (a *App) findModel(ctx context.Context, in cli.Sandbox, name string) (orchestrator.ModelChoice, error) {
	entries := a.service.Menu(ctx, in, nil)
	choice, problem := naming.Names{Entries: entries, Aliases: a.now().Models}.Find(name)
	// Chosen accepts a model whose effort is wrong. The caller uses only the model.
	if problem == nil || problem.Chosen() {
		return orchestrator.ModelChoice(choice), nil
	}
	var there []string
	for _, e := range entries {
		if e.Auth.State == cli.Authenticated {
			there = append(there, string(e.Agent))
		}
	}
	near := ""
	if problem.Near != "" {
		near = fmt.Sprintf(" (did you mean %q?)", problem.Near)
	}
	return orchestrator.ModelChoice{}, fmt.Errorf("no usable model here is called %q%s; agents here: %s", name, near,
		strings.Join(there, ", "))
}
