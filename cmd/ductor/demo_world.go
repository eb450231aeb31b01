package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"ductor/cli"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/keys"
	"ductor/internal/secrets"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/web/demo"
)

// demoWorld is a ductor together with its own simulated Telegram. The simulation does not listen on the network, so
// other users of this machine cannot write to the bot.
type demoWorld struct {
	srv      *telegram.Server
	bot      *demoBot
	scripted bool // the agents are scripted, not real
	seeded   bool // the demo created the project in which the agents work
}

// newDemoWorld creates a demoWorld whose agents work in dir. If dir is empty, newDemoWorld creates a small project for
// the agents. It writes only below home.
func newDemoWorld(home, dir string, log *slog.Logger) (*demoWorld, error) {
	w := &demoWorld{seeded: dir == ""}
	if w.seeded {
		dir = filepath.Join(home, demo.ProjectName)
		if err := demo.Seed(dir); err != nil {
			return nil, fmt.Errorf("make the demo's project: %w", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w.srv = telegram.New(telegram.Options{
		Limits: telegram.RealLimits(), BotName: "ductor", Token: "424242:" + rand.Text(),
		KeepMessages: 500, KeepVersions: 4, KeepCalls: 100, KeepFileBytes: 64 << 20,
	})
	demo.Populate(w.srv)
	cfg := config.Default()
	cfg.Telegram.Token = secrets.Value(w.srv.Token())
	// The demo sends all requests to the simulated Telegram, so the host telegram.invalid need not exist.
	cfg.Telegram.APIBase = "http://telegram.invalid"
	cfg.Telegram.AllowedUsers = []int64{int64(demo.You), int64(demo.Sam)}
	cfg.Telegram.AllowedGroups = []int64{int64(demo.TeamChat)}
	cfg.Telegram.GroupTrigger = "all"
	cfg.Telegram.Reactions = true
	cfg.Storage.Dir = filepath.Join(home, "state")
	cfg.Projects.DefaultDir, cfg.Projects.Roots = dir, []string{dir}
	w.bot = newDemoBot(cfg, w.srv, log)
	return w, nil
}

// newScriptedWorld creates a demoWorld with scripted agents.
func newScriptedWorld(home, dir string, log *slog.Logger) (*demoWorld, error) {
	w, err := newDemoWorld(home, dir, log)
	if err != nil {
		return nil, err
	}
	w.scripted = true
	programs, err := agent.InstallAt(filepath.Join(home, "agents"), demo.Answers())
	if err != nil {
		w.srv.Close()
		return nil, err
	}
	a := &w.bot.cfg.Agents
	a.Claude.Path, a.Codex.Path, a.Gemini.Path, a.Copilot.Path = programs.Claude, programs.Codex, programs.Gemini,
		programs.Copilot
	for name, variable := range map[string]string{
		agent.Claude: "ANTHROPIC_API_KEY", agent.Codex: "OPENAI_API_KEY", agent.Gemini: "GEMINI_API_KEY", agent.Copilot: "COPILOT_GITHUB_TOKEN",
	} {
		w.bot.cfg.Keys = append(w.bot.cfg.Keys, keys.Key{Agent: name, Name: variable, Value: secrets.Value(rand.Text())})
	}
	return w, nil
}

const lookPatience = 30 * time.Second

// loggedIn finds the first agent that is logged in, and makes it the default agent. It returns false if no agent is
// logged in.
func loggedIn(ctx context.Context, cfg *config.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var usable cli.Agent
	err := app.WithProbes(*cfg, func(providers []cli.Provider) {
		for _, p := range providers {
			if usable == "" && p.Auth(ctx).State == cli.Authenticated {
				usable = p.Agent()
			}
		}
	})
	if err != nil || usable == "" {
		return false
	}
	cfg.Agents.Default = usable
	return true
}
