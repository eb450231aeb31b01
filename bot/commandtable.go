package bot

import (
	"ductor/bot/updates"
	"ductor/orchestrator"
)

func abortCommand() updates.CommandSpec {
	return updates.CommandSpec{
		Name: updates.AbortName, Aliases: []string{"stop"}, Help: "bot.menu-abort", Right: orchestrator.EndOwn,
	}
}

// commandTable returns all commands in the order of the menu. No other code lists the commands.
func commandTable(c *commands) []updates.CommandSpec {
	const (
		read     = orchestrator.Read
		settings = orchestrator.ChangeSettings
		sessions = orchestrator.ChangeSessions
		files    = orchestrator.ReachFiles
		users    = orchestrator.ManageUsers
		manage   = orchestrator.ManageDuctor
		prompt   = updates.TakesPrompt
		file     = updates.TakesFile
	)
	model := modelCommand{c.screens.menus, c.messages, c.finisher, c.reply}.do
	language := c.page(language{c.lang}.command)
	setting := func(s orchestrator.Setting) updates.CommandFunc { return c.page(c.screens.menus.Setting(s)) }
	noFiles, noModels := c.screens.files == nil, !c.screens.consults.Offered()
	noUsers := c.screens.users.Directory == nil
	return []updates.CommandSpec{
		{Name: "new", Help: "bot.menu-new", Right: sessions, Takes: updates.TakesTurn, Do: c.newSession},
		{Name: "model", Help: "bot.menu-model", Right: settings, Do: model},
		{Name: "account", Help: "bot.menu-account", Right: settings, Do: c.page(c.screens.menus.Account)},
		{Name: "effort", Help: "bot.menu-effort", Right: settings, Do: c.page(c.screens.menus.Effort)},
		{Name: "context", Help: "bot.menu-context", Right: settings, Do: c.page(c.screens.agent.Context)},
		{Name: "compact", Help: "bot.menu-compact", Right: settings, Takes: prompt,
			Do: c.ofAgent(c.screens.agent.Compact)},
		{Name: "cmd", Help: "bot.menu-cmd", Right: settings, Takes: prompt, Do: c.ofAgent(c.screens.agent.Commands)},
		{Name: "usage", Help: "bot.menu-usage", Right: read, Do: c.page(c.screens.usage.Usage)},
		{Name: "audit", Help: "bot.menu-audit", Right: read, Do: c.page(c.screens.usage.Audit)},
		{Name: "permissions", Help: "bot.menu-permissions", Right: settings, Do: c.page(c.screens.menus.Permissions)},
		{Name: "role", Help: "bot.menu-role", Right: settings, Do: c.page(c.screens.menus.Role)},
		{Name: "queue", Help: "bot.menu-queue", Right: settings, Do: setting(orchestrator.SettingBusy)},
		{Name: "notify", Help: "bot.menu-notify", Right: settings, Do: setting(orchestrator.SettingNotify)},
		{Name: "think", Help: "bot.menu-think", Right: settings, Do: setting(orchestrator.SettingThink)},
		{Name: "display", Help: "bot.menu-display", Right: settings, Do: setting(orchestrator.SettingDisplay)},
		{Name: "cron", Help: "bot.menu-cron", Right: orchestrator.MakeSchedules, Takes: prompt,
			Do: c.page(c.screens.jobs.Command)},
		abortCommand(),
		{Name: "status", Help: "bot.menu-status", Right: read, Do: c.status},
		{Name: "sessions", Help: "bot.menu-sessions", Right: read, Takes: file, Do: c.listSessions},
		{Name: "rename", Help: "bot.menu-rename", Right: sessions, Do: c.page(c.screens.sessions.Rename)},
		{Name: "terminal", Help: "bot.menu-terminal", Right: sessions, Do: c.terminal},
		{Name: "files", Help: "bot.menu-files", Right: files, Absent: noFiles, Do: c.onFiles(c.browse)},
		{Name: "get", Help: "bot.menu-get", Right: files, Absent: noFiles, Do: c.onFiles(c.get)},
		{Name: "put", Help: "bot.menu-put", Right: files, Takes: file, Absent: noFiles, Do: c.onFiles(c.put)},
		{Name: "diff", Help: "bot.menu-diff", Right: read, Do: c.diff},
		{Name: "checkpoint", Help: "bot.menu-checkpoint", Right: files, Do: c.page(c.screens.changes.Checkpoint)},
		{Name: "project", Help: "bot.menu-project", Right: settings, Do: c.page(c.screens.projects.Command)},
		{Name: "newtopic", Help: "bot.menu-newtopic", Right: settings, Do: c.newTopic},
		{Name: "cwd", Help: "bot.menu-cwd", Right: settings, Do: c.cwd},
		{Name: "consult", Aliases: []string{groupCommand}, Help: "bot.menu-consult", Right: settings, Takes: prompt,
			Absent: noModels, Do: c.consult},
		{Name: "pair", Help: "bot.menu-pair", Right: users, Absent: noUsers, Do: c.page(c.screens.users.Pair)},
		{Name: "users", Help: "bot.menu-users", Right: users, Absent: noUsers, Do: c.page(c.screens.users.Users)},
		{Name: "doctor", Help: "bot.menu-doctor", Right: manage, Absent: !c.screens.checks.Offered(), Do: c.doctor},
		{Name: "reload", Help: "bot.menu-reload", Right: manage, Absent: c.screens.reload == nil, Do: c.reloadConfig},
		{Name: "language", Help: "bot.menu-language", Right: settings, Do: language},
		{Name: "help", Help: "bot.menu-help", Do: c.help},
		{Name: "start", Do: c.start},
		{Name: "summarize", Right: settings, Takes: prompt, Do: c.removedCommand("bot.summarize-is-gone")},
	}
}
