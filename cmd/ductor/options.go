package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"ductor/bot"
	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/secrets"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// This file translates the configuration into the options of each room, and does nothing else.

func botOptions(cfg config.Config, db *store.DB, log *slog.Logger, scrub *bot.Scrubber, transport http.RoundTripper) bot.Options {
	t := cfg.Telegram
	o := bot.Options{
		Token: t.Token.Reveal(), APIBase: t.APIBase, Transport: transport, Scrub: scrub,
		Journal: db, UploadsDir: filepath.Join(cfg.Storage.Dir, uploadsDir), MaxUpload: int64(cfg.Storage.UploadsMaxMB) << 20,
		Allow: bot.Allow{
			Users: people(t.AllowedUsers), Groups: t.AllowedGroups, Members: bot.GroupMembers(t.GroupMembers),
		},
		Trigger: bot.GroupTrigger(t.GroupTrigger), AbortWords: t.AbortWords, Receipts: bot.NoReceipts,
		AlbumWindow: window(cfg.Queue.AlbumWindow), PasteWindow: window(cfg.Queue.MergeWindow),
		Outbox: outboxOptions(cfg.Rate), Cards: cardsOptions(cfg.Stream), Log: log,
	}
	if t.Reactions {
		o.Receipts = bot.ReactionReceipts
	}
	if len(t.AllowedUsers) > 0 {
		o.Owner = orchestrator.PersonID(t.AllowedUsers[0])
	}
	return o
}

func transportOf(cfg config.Config) (http.RoundTripper, error) {
	t, err := bot.NewTransport(cfg.Telegram.Proxy.Reveal())
	if err != nil {
		return nil, coded{fmt.Errorf("telegram.proxy: %w", err), errConfig}
	}
	return t, nil
}

func people(ids []int64) []orchestrator.PersonID {
	var out []orchestrator.PersonID
	for _, id := range ids {
		out = append(out, orchestrator.PersonID(id))
	}
	return out
}

// window says "not at all" as the bot wants to hear it: its zero is the default.
func window(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// margin keeps a little below what Telegram allows, since its clock is not ours.
const margin = 1.05

func outboxOptions(r config.Rate) bot.OutboxOptions {
	return bot.OutboxOptions{
		Private: bot.Budget{Every: every(time.Second, r.PrivatePerSecond), Burst: r.PrivateBurst},
		Group:   bot.Budget{Every: every(time.Minute, r.GroupPerMinute), Burst: max(int(r.GroupPerMinute/4), 1)},
		Overall: bot.Budget{Every: time.Duration(float64(time.Second) / r.OverallPerSecond), Burst: max(int(r.OverallPerSecond), 1)},
	}
}

func every(unit time.Duration, count float64) time.Duration {
	return time.Duration(float64(unit) * margin / count)
}

func cardsOptions(s config.Stream) bot.CardsOptions {
	o := bot.CardsOptions{
		IntervalPrivate: s.IntervalPrivate, IntervalGroup: s.IntervalGroup, StatusAfter: s.StatusAfter,
		MaxMessages:  s.MaxMessages,
		ShowThinking: s.ShowThinking,
		Pacer: func() bot.Pacer {
			return cli.NewCoalescer(cli.CoalescerOptions{
				MinChars: s.MinChars, MaxChars: s.MaxChars, Idle: s.Idle, Sentences: s.SentenceEnds, Paragraphs: s.ParagraphEnds,
			})
		},
	}
	for _, field := range s.Footer {
		o.Footer = append(o.Footer, bot.FooterField(field))
	}
	return o
}

func serviceOptions(cfg config.Config, h *house, log *slog.Logger) cli.ServiceOptions {
	a := cfg.Agents
	o := cli.ServiceOptions{
		Providers: h.providers(h.hostGround()), Launchers: []cli.Launcher{h.host}, Sites: h.sites(), OpenSite: h.openSite, Default: cli.Agent(a.Default), Modes: modesOf(a),
		Timeout: a.TurnTimeout, Grace: a.Grace, IdleLimit: a.IdleLimit, MaxSessions: a.MaxLive, MaxMemory: int64(a.MaxMemoryMB) << 20,
		Available: cli.ThisHost().Available, Logger: log,
	}
	if h.homes != nil { // a nil one in an interface is not nil
		o.Homes = h.homes
	}
	for _, name := range a.Fallback {
		o.Fallbacks = append(o.Fallbacks, cli.Agent(name))
	}
	return o
}

// modesOf are those that the owner configured.
func modesOf(a config.Agents) map[cli.Agent]cli.Mode {
	return map[cli.Agent]cli.Mode{
		"claude": cli.Mode(a.Claude.Mode), "codex": cli.Mode(a.Codex.Mode),
		"gemini": cli.Mode(a.Gemini.Mode), "copilot": cli.Mode(a.Copilot.Mode),
	}
}

// unasked reaches the orchestrator, which is built after the agents.
func (h *house) unasked(conversation cli.Conversation, r cli.Result) { h.desk.Unasked(conversation, r) }

func orchestratorOptions(cfg config.Config, h *house, log *slog.Logger) orchestrator.Options {
	o := orchestrator.Options{
		Store: deskStore{h.db, h.jobEnded}, Orders: h.db, Disk: h.db, Gateway: h.service, Chat: h.bot.Chat(),
		Permission: cli.PermissionMode(cfg.Permissions.Mode), AllowedTools: cfg.Permissions.AllowedTools,
		DeniedTools: cfg.Permissions.DeniedTools,
		Agents:      defaultsOf(cfg.Agents),
		Sandboxes:   h.boxes.policy,
		Dir:         cfg.Projects.DefaultDir, Roots: cfg.Projects.Roots,
		Roles: map[string]orchestrator.Role{}, DefaultRole: cfg.Sessions.DefaultRole,
		UploadsDir: filepath.Join(cfg.Storage.Dir, uploadsDir), Protected: ownFiles(cfg),
		Secrets: func(dir string) *secrets.Set {
			return h.scrub.Secrets().With(secrets.OfProject(dir)...)
		},
		QueueMax: cfg.Queue.Max, HistoryTurns: cfg.Sessions.HistoryTurns, HistoryBytes: cfg.Sessions.HistoryBytes,
		IdleReset: cfg.Sessions.IdleReset, DailyReset: cfg.Sessions.DailyReset, DeliveryWait: deliveryWait,
		Asks: h.bot.Chat(), Approvers: approversOf(cfg), AskTimeout: cfg.Permissions.AskTimeout,
		Now: time.Now, NewID: newID, Logger: log,
	}
	for name, r := range cfg.Roles {
		o.Roles[name] = orchestrator.Role{
			Prompt: r.Prompt, Replace: !r.Append, Agent: cli.Agent(r.Agent), Model: cli.ModelID(r.Model),
		}
	}
	return o
}

// deliveryWait is how long the next turn waits for the chat to show the last one.
const deliveryWait = 30 * time.Second

// approversOf says who may answer in a group: whose turn it is, or all that are listed. For a user who is not listed, all
// that are.
func approversOf(cfg config.Config) func(orchestrator.ConversationID, orchestrator.PersonID) []orchestrator.PersonID {
	all := people(cfg.Telegram.AllowedUsers)
	return func(_ orchestrator.ConversationID, asker orchestrator.PersonID) []orchestrator.PersonID {
		if cfg.Permissions.Approvers != "members" && slices.Contains(all, asker) {
			return []orchestrator.PersonID{asker}
		}
		return all
	}
}
