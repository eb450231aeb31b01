package app

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"ductor/bot"
	"ductor/bot/card"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/host"
	"ductor/cli/service"
	"ductor/heartbeat/schedule"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/circuit"
	"ductor/orchestrator/consult"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/files"
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/side"
	"ductor/orchestrator/spending"
)

// serving returns the options of the bot.
func (a *App) serving(ctx context.Context) (bot.Options, error) {
	transport, err := a.countedTransport()
	if err != nil {
		return bot.Options{}, err
	}
	o := a.botOptions(transport)
	o.Lost, err = a.db.LastRescue(ctx)
	return o, err
}

func (a *App) botOptions(transport http.RoundTripper) bot.Options {
	cfg, t := a.cfg, a.cfg.Telegram
	o := bot.Options{
		Token: t.Token.Reveal(), APIBase: t.APIBase, APIFiles: t.APIFiles, Transport: transport, Scrub: a.Scrub,
		Journal: a.db, UploadsDir: filepath.Join(cfg.Storage.Dir, environment.UploadsDir), MaxUpload: int64(cfg.Storage.UploadsMaxMB) << 20,
		Lang: a.lang, Users: a.users, Allow: updates.Allow{Users: a.users, Joins: a.users, Policy: func() updates.Policy { return a.now().hearing }},
		AlbumWindow: window(cfg.Queue.AlbumWindow), PasteWindow: window(cfg.Queue.MergeWindow),
		Outbox: outboxOptions(cfg.Rate), Cards: card.Options{Look: func() card.Look { return a.now().look }}, Log: a.Log,
		Aliases: func() map[string]string { return a.now().aliases }, Group: func() []string { return a.now().Consult.Group },
		SpoolDir: filepath.Join(cfg.Storage.Dir, spoolDir), FileMarks: cfg.Files.Marker,
		Listener: listener(cfg.Voice), Confirm: cfg.Voice.Confirm,
		Quiet: a.quietHour, Silence: func() time.Duration { return a.now().Notify.Silence },
		Owner: ownerOf(cfg),
	}
	if a.Load != nil {
		o.Reload = a.reloadFor
	}
	return o
}

// hearingOf is whom the bot answers besides users, and to what it listens.
func hearingOf(cfg config.Config) updates.Policy {
	t := cfg.Telegram
	p := updates.Policy{
		Groups: t.AllowedGroups, Members: updates.GroupMembers(t.GroupMembers), Trigger: updates.GroupTrigger(t.GroupTrigger), AbortWords: t.AbortWords,
		Receipts: updates.NoReceipts,
	}
	if t.Reactions {
		p.Receipts = updates.ReactionReceipts
	}
	return p
}

// aliasesOf are the names of models, and what /model takes for them.
func aliasesOf(cfg config.Config) map[string]string {
	all := make(map[string]string, len(cfg.Models))
	for name, a := range cfg.Models {
		all[name] = a.Use
	}
	return all
}

// ownerOf is the user who is told what concerns the machine; 0 for none.
func ownerOf(cfg config.Config) orchestrator.PersonID {
	return orchestrator.PersonID(cfg.Owner())
}

// RosterOf returns the role of each configured user.
func RosterOf(cfg config.Config) orchestrator.Roster {
	all := orchestrator.Roster{}
	for _, id := range cfg.Telegram.AllowedUsers {
		if role, ok := orchestrator.ParseUserRole(cfg.RoleOfUser(id)); ok {
			all[orchestrator.PersonID(id)] = role
		}
	}
	return all
}

// Transport returns the transport to Telegram, which uses the configured proxy.
func Transport(cfg config.Config) (http.RoundTripper, error) {
	t, err := tgapi.NewTransport(cfg.Telegram.Proxy.Reveal())
	if err != nil {
		return nil, WithKind(ErrConfig, fmt.Errorf("telegram.proxy: %w", err))
	}
	return t, nil
}

// window returns the bot's option for a window. For the bot, zero means its default and not "no window".
func window(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// outboxOptions gives the configured rates; the outbox has defaults for the rest.
func outboxOptions(r config.Rate) outbox.Options {
	o := outbox.Options{
		Private: outbox.Rate{Every: every(time.Second, r.PrivatePerSecond), Burst: r.PrivateBurst},
		Group:   outbox.Rate{Every: every(time.Minute, r.GroupPerMinute)},
		Overall: outbox.Rate{Every: every(time.Second, r.OverallPerSecond)},
	}
	if r.GroupPerMinute > 0 {
		o.Group.Burst = max(int(r.GroupPerMinute/2), 1)
	}
	if r.OverallPerSecond > 0 {
		o.Overall.Burst = max(int(r.OverallPerSecond), 1)
	}
	return o
}

// every is the time between two of count in a unit; 0 for a count of 0.
func every(unit time.Duration, count float64) time.Duration {
	if count == 0 {
		return 0
	}
	return time.Duration(float64(unit) / count)
}

// lookOf is how cards grow and end.
func lookOf(cfg config.Config) card.Look {
	s := cfg.Stream
	o := card.Look{
		Drafts:          s.Mode == "draft",
		Think:           settingsOf(cfg).Think,
		IntervalPrivate: s.IntervalPrivate, IntervalGroup: s.IntervalGroup, StatusAfter: s.StatusAfter,
		MaxMessages: s.MaxMessages, Places: cfg.Sandbox.Any(),
		Pacing: card.Pacing{
			MinChars: s.MinChars, MaxChars: s.MaxChars, Idle: s.Idle, Sentences: s.SentenceEnds, Paragraphs: s.ParagraphEnds,
		},
	}
	for _, field := range s.Footer {
		o.Footer = append(o.Footer, card.FooterField(field))
	}
	return o
}

func serviceOptions(cfg config.Config, a *App) service.Options {
	agents := cfg.Agents
	a.providers = a.agents().providers(a.agents().hostEnv(a.host))
	o := service.Options{
		Providers: a.providers, Launchers: []cli.Launcher{a.host}, RunEnvs: a.runEnvs(), OpenRunEnv: a.openRunEnv, Background: a.db.RecordBackground, Began: a.db.SaveBegun, Default: cli.Agent(agents.Default), Modes: modesOf(agents),
		Timeout: agents.TurnTimeout, Grace: agents.Grace, IdleLimit: agents.IdleLimit, MaxSessions: agents.MaxLive, MaxMemory: int64(agents.MaxMemoryMB) << 20,
		Logger: a.Log,
	}
	if a.Launcher == nil { // App.host runs the agents on this machine
		o.Available = host.MachineMemory().Available
	}
	if a.envs.Homes != nil { // a nil pointer in an interface is not nil
		o.Homes = a.envs.Homes
	}
	for _, name := range agents.Fallback {
		o.Fallbacks = append(o.Fallbacks, cli.Agent(name))
	}
	return o
}

// modesOf gives the configured mode of each agent.
func modesOf(agents config.Agents) map[cli.Agent]cli.Mode {
	return map[cli.Agent]cli.Mode{
		"claude": cli.Mode(agents.Claude.Mode), "codex": cli.Mode(agents.Codex.Mode),
		"gemini": cli.Mode(agents.Gemini.Mode), "copilot": cli.Mode(agents.Copilot.Mode),
	}
}

// onBackground passes the result of a background task to the orchestrator, which is created after the agents.
func (a *App) onBackground(conversation cli.Conversation, r cli.BackgroundResult) {
	a.orchestrator.Background(conversation, r)
}

func conversationOptions(cfg config.Config, a *App) conversation.Options {
	o := conversation.Options{
		Store: turnStore{a.db, a.jobEnded}, Orders: a.db, Disk: a.db, Snapshots: a.changes,
		Gateway: a.gateway(), Tracer: a.turnTracer(), Chat: a.bot.Chat(),
		Live:      func() conversation.TurnOptions { return a.now().turns },
		Sandboxes: a.envs.Sandboxes.Policy(),
		Dir:       cfg.Projects.DefaultDir, Roots: cfg.Projects.Roots, AddDirs: cfg.Projects.AddDirs,
		Roles:      a.roles,
		UploadsDir: filepath.Join(cfg.Storage.Dir, environment.UploadsDir), Protected: ownFiles(cfg),
		Files:   func(in cli.Sandbox) (approval.Files, error) { return a.filesOf(in) },
		Secrets: a.secretsOf,
		Servers: a.toolServers,

		QuietHour: a.quietHour, Budgets: a.budgets(), DeliveryWait: deliveryWait,
		Screen: a.bot.Chat(), Approvers: a.approvers, ApprovalTimeout: cfg.Permissions.AskTimeout,
		OnFailure: conversation.OnFailure{Jobs: a.timers.scheduler, Owner: ownerOf(cfg), Breakers: circuit.New(cfg.Recovery.Failures, time.Now)},
		Shorten:   a.shortener(), Lang: a.lang, Now: time.Now, NewID: newID, Logger: a.Log,
	}
	if cfg.Files.Marker {
		o.Instruction = files.Instruction
	}
	o.Summarizer = &handoff.Summarizer{Store: a.db, Side: a.side(), Model: summaryModel(cfg), Wait: summaryWait}
	return o
}

// turnsOf returns the options of turns.
func turnsOf(cfg config.Config) conversation.TurnOptions {
	return conversation.TurnOptions{
		Permission: cli.PermissionMode(cfg.Permissions.Mode), AllowedTools: cfg.Permissions.AllowedTools, DeniedTools: cfg.Permissions.DeniedTools,
		Agents: defaultsOf(cfg.Agents), Projects: projectsOf(cfg), DefaultRole: cfg.Sessions.DefaultRole,
		Settings: settingsOf(cfg), LongTurn: cfg.Notify.Long, QueueMax: cfg.Queue.Max,
		HandoffTokens: cfg.Sessions.HandoffTokens, IdleReset: cfg.Sessions.IdleReset, DailyReset: cfg.Sessions.DailyReset,
		Limits: orchestrator.LimitPolicy(cfg.Recovery.RateLimited), Retries: cfg.Recovery.Retries, RetryAfter: cfg.Recovery.RetryAfter,
	}
}

// quietHour reports whether messages are silent at a time.
func (a *App) quietHour(at time.Time) bool {
	n := a.now().Notify
	_, quiet := schedule.QuietUntil(n.QuietFrom, n.QuietTo, at, time.Local)
	return quiet
}

// budgets returns the configured budgets.
func (a *App) budgets() *spending.Budgets {
	return spending.New(spending.Options{Store: a.db, Limits: func() spending.Budget { return a.now().budget }, Now: time.Now, Logger: a.Log})
}

func budgetOf(cfg config.Config) spending.Budget {
	b := cfg.Budget
	return spending.Budget{
		All: spending.Limits{Day: b.Day, Month: b.Month}, User: spending.Limits{Day: b.UserDay, Month: b.UserMonth},
		Job: spending.Limits{Day: b.JobDay, Month: b.JobMonth},
	}
}

func (a *App) side() side.Client {
	return side.Client{Gateway: a.gateway(), Tracer: a.turnTracer(), NewID: newID, Secrets: a.secretsOf, Budgets: a.budgets()}
}

// shortener returns the summarizer of long results.
func (a *App) shortener() side.Shortener {
	return side.Shortener{Side: a.side(), Model: summaryModel(a.cfg), Wait: summaryWait, Logger: a.Log}
}

// summaryModel is the model that summarizes; the zero value if none is configured.
func summaryModel(cfg config.Config) orchestrator.ModelChoice {
	agent, model := cfg.Summarizes()
	return orchestrator.ModelChoice{Agent: cli.Agent(agent), Model: cli.ModelID(model)}
}

func consultOptions(cfg config.Config, a *App) consult.Options {
	return consult.Options{
		Side: a.side(), Store: a.db, SideRequest: a.orchestrator.SideRequest, Now: time.Now, Logger: a.Log,
		Works:   consult.Works{AskFor: a.orchestrator.AskFor, Decide: a.gateway().Decide, Audit: a.db.RecordAudit},
		Shorten: a.shortener(),
	}
}

// settingsOf returns the settings of chats that chose none.
func settingsOf(cfg config.Config) orchestrator.Settings {
	d := orchestrator.Settings{Notify: orchestrator.NotifyMode(cfg.Notify.Mode), Think: orchestrator.ThinkOff, Display: orchestrator.DisplayMode(cfg.Stream.Display)}
	if cfg.Stream.ShowThinking {
		d.Think = orchestrator.ThinkOn
	}
	return d
}

// namedProjects returns the directories of the configured projects, with and without their own sandbox.
func namedProjects(cfg config.Config) map[string]string {
	named := map[string]string{}
	for name, p := range cfg.Sandbox.Projects {
		named[name] = p.Dir
	}
	for name, p := range cfg.Projects.Named {
		named[name] = p.Dir
	}
	return named
}

// summaryWait is how long to wait for a summary of earlier turns or of a long result.
const summaryWait = 20 * time.Second

// rolesOf are the roles in the configuration. There are those that ship with ductor and of the folder roles beside it, too.
func rolesOf(cfg config.Config) map[string]orchestrator.Role {
	configured := map[string]orchestrator.Role{}
	for name, r := range cfg.Roles {
		configured[name] = orchestrator.Role{Prompt: r.Prompt, Replace: !r.Append, Agent: cli.Agent(r.Agent), Model: cli.ModelID(r.Model), Tools: toolList(r.ToolLists)}
	}
	return configured
}

// deliveryWait is how long the next turn waits for the chat to show the last one.
const deliveryWait = 30 * time.Second

// approvers returns the users who may answer an approval in a group: all users whose role allows it, or only the user
// of the turn. permissions.approvers selects one of the two. All users may answer if the role of the turn's user does
// not allow it.
func (a *App) approvers(_ orchestrator.ConversationID, user orchestrator.PersonID) []orchestrator.PersonID {
	all := a.users.Having(orchestrator.DecideRequests)
	if a.now().Permissions.Approvers != "members" && a.users.RoleOf(user).May(orchestrator.DecideRequests) {
		return []orchestrator.PersonID{user}
	}
	return all
}
