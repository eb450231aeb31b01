package app

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"ductor/bot"
	"ductor/bot/card"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/host"
	"ductor/cli/naming"
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
	"ductor/orchestrator/workplace"
)

// serving returns the options of the bot, except for some options that the caller adds.
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
		Lang: a.lang, Users: a.users, Allow: updates.Allow{Users: a.users, Joins: a.users, Policy: func() updates.Policy { return a.now().Telegram.Policy }},
		AlbumWindow: window(cfg.Queue.AlbumWindow), PasteWindow: window(cfg.Queue.MergeWindow),
		Outbox: cfg.Rate.Options(), Cards: card.Options{Look: func() card.Look { return a.now().look }}, Log: a.Log,
		Aliases: func() map[string]naming.Alias { return a.now().Models }, Group: func() []string { return a.now().Consult.Group },
		SpoolDir: filepath.Join(cfg.Storage.Dir, spoolDir), FileMarks: cfg.Files.Marker,
		Listener: listener(cfg.Voice, cfg.Storage.Dir), Confirm: cfg.Voice.Confirm,
		Quiet: a.quietHour, Silence: func() time.Duration { return a.now().Notify.Silence },
		Owner: ownerOf(cfg), Noticed: a.showNotice,
	}
	o.Offers.AccountTable = func(agent cli.Agent) string { return a.now().Agents.AccountTable(string(agent)) }
	o.Offers.Known = knownAgent
	if a.Load != nil {
		o.Reload = a.reloadFor
		o.Offers.Next, o.Offers.Add = a.nextAgents, a.addAgent
	}
	return o
}

// ownerOf returns the user who gets messages about the machine, or 0 if none is configured.
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

// Transport returns the transport to Telegram, through the configured proxy.
func Transport(cfg config.Config) (http.RoundTripper, error) {
	t, err := tgapi.NewTransport(cfg.Telegram.Proxy.Reveal())
	if err != nil {
		return nil, WithKind(ErrConfig, fmt.Errorf("telegram.proxy: %w", err))
	}
	return t, nil
}

// window converts a configured time window to an option of the bot. In the configuration, zero means that there is no
// window. The option is then -1, because zero would mean the default.
func window(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func lookOf(cfg config.Config) card.Look {
	look := cfg.Stream.Look
	look.Think, look.Places = settingsOf(cfg).Think, cfg.Sandbox.Any()
	return look
}

func serviceOptions(cfg config.Config, a *App) service.Options {
	agents := a.agents(cfg)
	env := agents.hostEnv(a.host)
	a.machine.used = agents.providers(env)
	o := service.Options{
		Providers: a.machine.used, Accounts: agents.accounts(env),
		Settings: cfg.Agents.Settings, Modes: modesOf(cfg.Agents), Grace: cfg.Agents.Grace,
		Launchers: []cli.Launcher{a.host}, RunEnvs: a.runEnvs(), OpenRunEnv: a.openRunEnv,
		Background: a.db.RecordBackground, Began: a.db.SaveBegun, Flush: a.db.Flush, Logger: a.Log,
	}
	// Set Available only for this machine, because MachineMemory knows no other machine. A launcher in the options may
	// start agents on another one.
	if a.Launcher == nil {
		o.Available = host.MachineMemory().Available
	}
	if a.envs.Homes != nil { // do not assign a nil *host.Homes, because the interface o.Homes would then not be nil
		o.Homes = a.envs.Homes
	}
	return o
}

// modesOf returns the configured mode of each agent that has modes.
func modesOf(agents config.Agents) map[cli.Agent]cli.Mode {
	modes := map[cli.Agent]cli.Mode{}
	for name, c := range agents.Own() {
		modes[name] = c.Mode
	}
	return modes
}

// onBackground passes the result of a background task to the orchestrator. The agents cannot call the orchestrator
// directly, because they are created before the orchestrator.
func (a *App) onBackground(conversation cli.Conversation, r cli.BackgroundResult) {
	a.orchestrator.Background(conversation, r)
}

func (a *App) places(cfg config.Config) workplace.Places {
	policy := environment.NewPolicy(cfg)
	return workplace.Places{
		Dir: cfg.Projects.DefaultDir, Roots: cfg.Projects.Roots, AddDirs: cfg.Projects.AddDirs,
		UploadsDir: filepath.Join(cfg.Storage.Dir, environment.UploadsDir), Sandboxes: a.envs.Sandboxes.Policy(),
		Links: workplace.LinksOf(func(dir string) string {
			return realDir(policy, orchestrator.ConversationID{}, dir)
		}, append([]string{cfg.Projects.DefaultDir}, cfg.Projects.Roots...)...),
	}
}

func conversationOptions(cfg config.Config, a *App) conversation.Options {
	o := conversation.Options{
		Store: turnStore{a.db, a.jobEnded}, Orders: a.db, Disk: a.db, Snapshots: a.changes,
		Gateway: a.gateway(), Tracer: a.turnTracer(), Viewers: a.attached.viewers(),
		Tokens: side.Tokens{Try: a.tools.tokens.try, Keep: a.tools.tokens.keep},
		Chat:   viewedChat{a.bot.Chat(), a.attached.hub},
		Live:   func() conversation.TurnOptions { return a.now().turns },
		Places: a.places(cfg),
		Policy: approval.Policy{
			Screen: viewedScreen{a.bot.Chat(), a.attached.hub}, Approvers: a.approvers, Protected: ownFiles(cfg),
			ApprovalTimeout: cfg.Permissions.AskTimeout,
			Files:           func(in cli.Sandbox) (approval.Files, error) { return a.filesOf(in) },
		},
		Roles:   a.roles,
		Secrets: a.secretsOf,
		Servers: a.toolServers, OwnersServers: a.openServers().For,

		QuietHour: a.quietHour, Budgets: a.budgets(), DeliveryWait: deliveryWait,
		Permits:   a.permits,
		OnFailure: conversation.OnFailure{Jobs: a.timers.scheduler, Owner: ownerOf(cfg), Breakers: circuit.New(cfg.Recovery.Failures, time.Now)},
		Shorten:   a.shortener(), Lang: a.lang, Now: time.Now, NewID: newID, Logger: a.Log,
	}
	if cfg.Files.Marker {
		o.Instruction = files.Instruction
	}
	o.Summarizer = &handoff.Summarizer{Store: a.db, Side: a.side(), Model: cfg.Summarizes(), Wait: summaryWait}
	return o
}

func turnsOf(cfg config.Config) conversation.TurnOptions {
	return conversation.TurnOptions{
		Permissions: cfg.Permissions, Sessions: cfg.Sessions, Recovery: cfg.Recovery, Agents: defaultsOf(cfg.Agents),
		Projects: projectsOf(cfg), Settings: settingsOf(cfg), LongTurn: cfg.Notify.Long, QueueMax: cfg.Queue.Max,
	}
}

// quietHour reports whether messages make no sound at this time.
func (a *App) quietHour(at time.Time) bool {
	n := a.now().Notify
	_, quiet := schedule.QuietUntil(n.QuietFrom, n.QuietTo, at, time.Local)
	return quiet
}

func (a *App) budgets() *spending.Budgets {
	return spending.New(spending.Options{Store: a.db, Limits: func() spending.Budget { return a.now().Budget }, Now: time.Now, Logger: a.Log})
}

func (a *App) side() side.Client {
	return side.Client{Gateway: a.gateway(), Tracer: a.turnTracer(), NewID: newID, Secrets: a.secretsOf, Budgets: a.budgets()}
}

func (a *App) shortener() side.Shortener {
	return side.Shortener{Side: a.side(), Model: a.cfg.Summarizes(), Wait: summaryWait, Logger: a.Log}
}

func consultOptions(cfg config.Config, a *App) consult.Options {
	return consult.Options{
		Side: a.side(), Store: a.db, Session: a.orchestrator.SideSession, Names: a.db,
		SideRequest: a.orchestrator.SideRequest, CheckDir: a.places(cfg).CheckDir, Now: time.Now, Logger: a.Log,
		Budget:  func() int { return a.now().turns.Sessions.HandoffTokens },
		Works:   consult.Works{AskFor: a.orchestrator.AskFor, Decide: a.gateway().Decide, Audit: a.db.RecordAudit},
		Shorten: a.shortener(),
	}
}

func settingsOf(cfg config.Config) orchestrator.Settings {
	d := orchestrator.Settings{Notify: cfg.Notify.Mode, Think: orchestrator.ThinkOff, Display: cfg.Stream.Display}
	if cfg.Stream.ShowThinking {
		d.Think = orchestrator.ThinkOn
	}
	return d
}

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

// summaryWait limits how long a turn waits for a summary of earlier turns or of a long result.
const summaryWait = 20 * time.Second

// deliveryWait limits how long a turn waits for the chat to show the outcome of the previous turn.
const deliveryWait = 30 * time.Second

// approvers returns the users who may decide an approval in a group. Normally, only the user of the turn may decide. If
// the role of this user does not allow it, or with the setting permissions.approvers = "members", all users whose role
// allows it may decide.
func (a *App) approvers(_ orchestrator.ConversationID, user orchestrator.PersonID) []orchestrator.PersonID {
	all := a.users.Having(orchestrator.DecideRequests)
	if a.now().Permissions.Approvers != "members" && a.users.RoleOf(user).May(orchestrator.DecideRequests) {
		return []orchestrator.PersonID{user}
	}
	return all
}

// permits implements conversation.Options.Permits.
func (a *App) permits(t orchestrator.Turn) bool {
	return permits(a.now().Config, a.users.RoleOf, a.formerChat, t)
}

// formerChat returns the ID of a group before it became a supergroup, or 0.
func (a *App) formerChat(chat int64) int64 {
	former, err := a.db.FormerChat(context.Background(), chat)
	if err != nil {
		a.Log.Error("check whether a group may still use ductor", "chat", chat, "err", err)
	}
	return former
}

// permits reports whether a waiting turn may start with the configuration cfg. If the turn belongs to a job or to a
// pressed button and runs in a group, the configuration must allow this group. In addition, the user must have the
// rights that the turn requires.
func permits(cfg config.Config, roleOf func(orchestrator.PersonID) orchestrator.UserRole,
	formerChat func(int64) int64, t orchestrator.Turn) bool {
	in, role, of := t.Prompt.Conversation, roleOf(t.Prompt.Person), t.Prompt.Rights.Of
	job := of == orchestrator.RightsOfJob
	allowed := cfg.Telegram.AllowedGroups
	// When a group becomes a supergroup, its ID changes. The configuration may still contain the former ID.
	if in.Group() && (job || of == orchestrator.RightsOfPress) && !slices.Contains(allowed, in.Chat) &&
		!slices.Contains(allowed, formerChat(in.Chat)) {
		return false
	}
	_, later := t.Wants.Job.Repeats()
	switch {
	case job && later: // the job repeats a prompt of the user
		return role.May(orchestrator.ActAsChat)
	case job && in.Group():
		return mayRunInGroup(t.Wants.Job, role)
	case job && t.Wants.Job.Configured():
		return roleOf(orchestrator.PersonID(in.Chat)) != orchestrator.RoleNone
	case job: // the user of the private chat created the job
		return roleOf(orchestrator.PersonID(in.Chat)).May(orchestrator.MakeSchedules)
	case of == orchestrator.RightsOfMember && role == orchestrator.RoleNone:
		return cfg.Telegram.GroupMembers == updates.AllMembers
	case of == orchestrator.RightsOfMember:
		return role.May(orchestrator.SendPrompts)
	}
	return role.May(orchestrator.ActAsChat)
}

// jobMayRun implements heartbeat.Options.MayRun. If jobMayRun returns false, the scheduler pauses the job until another
// user resumes it. A private chat has no other user. So jobMayRun returns true there, and permits rejects the job's
// turns while the user lacks the rights.
func (a *App) jobMayRun(j orchestrator.Job) bool {
	_, later := j.ID.Repeats()
	return later || !j.Conversation.Group() || mayRunInGroup(j.ID, a.users.RoleOf(j.Person))
}

// mayRunInGroup reports whether a job may run in a group, given the role of its creator. The role does not matter for a
// job of the configuration, because only owners can change the configuration.
func mayRunInGroup(job orchestrator.JobID, creator orchestrator.UserRole) bool {
	return job.Configured() || creator.May(orchestrator.MakeSchedules)
}
