package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ductor/internal/attach"
	"ductor/internal/statesocket"
	"ductor/orchestrator"
)

// attached connects ductor with the terminals in which the owner runs `ductor attach`. The hub is created before the
// server, because turns send events to the hub from the start.
type attached struct {
	hub    *attach.Hub
	server *attach.Server
}

func (a *App) openTerminals(guard statesocket.Guard) {
	a.attached.server = attach.NewServer(attach.Options{
		Hub: a.attached.hub, Dir: a.cfg.Storage.Dir, Version: a.Version, Admit: guard.Admit,
		Owner: func() orchestrator.PersonID { return ownerOf(a.now().Config) }, RoleOf: a.users.RoleOf,
		Group: func(chat int64) bool { return slices.Contains(a.now().Telegram.AllowedGroups, chat) },
		Store: a.db, Desk: a.orchestrator, Chat: a.bot, Now: time.Now, Log: a.Log,
	})
}

// showNotice shows a message of the chat in attached terminals, without secrets.
func (a *App) showNotice(in orchestrator.ConversationID, key, text string) {
	a.attached.hub.Notice(in, key, a.Scrub.String(text))
}

// viewers returns the functions that show turns in attached terminals.
func (t attached) viewers() *orchestrator.Viewers {
	return &orchestrator.Viewers{Follow: t.hub.Follow, Ended: t.hub.Ended}
}

// serve serves terminals until the caller calls stop. It logs errors.
func (t attached) serve(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := t.server.Serve(ctx); err != nil {
			log.Error("serve attached terminals", "err", err)
		}
	})
	return func() { cancel(); serving.Wait() }
}

// viewedChat wraps the Chat that conversations use. It also shows queued and ended turns in attached terminals.
type viewedChat struct {
	orchestrator.Chat
	hub *attach.Hub
}

// Queued implements orchestrator.Chat.
func (c viewedChat) Queued(t orchestrator.Turn, ahead int) {
	c.hub.Waits(t, ahead)
	c.Chat.Queued(t, ahead)
}

// Unqueued implements orchestrator.Chat.
func (c viewedChat) Unqueued(t orchestrator.Turn) {
	c.hub.Waits(t, 0)
	c.Chat.Unqueued(t)
}

// Redeliver implements orchestrator.Chat.
func (c viewedChat) Redeliver(ctx context.Context, t orchestrator.Turn) error {
	c.hub.Ended(t)
	return c.Chat.Redeliver(ctx, t)
}

// Extend implements orchestrator.Chat.
func (c viewedChat) Extend(ctx context.Context, t orchestrator.Turn) error {
	c.hub.Ended(t)
	return c.Chat.Extend(ctx, t)
}

// viewedScreen shows approvals in the chat and in terminals.
type viewedScreen struct {
	orchestrator.ApprovalScreen
	hub *attach.Hub
}

// ShowApproval implements orchestrator.ApprovalScreen.
func (s viewedScreen) ShowApproval(approval orchestrator.Approval, isNew bool) {
	s.hub.Approval(approval)
	s.ApprovalScreen.ShowApproval(approval, isNew)
}
