package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
)

// BackupsDir is the directory of automatic backups in the storage directory.
const BackupsDir = "backups"

const (
	backupEvery = 24 * time.Hour
	backupRetry = time.Hour
	backupCalm  = 5 * time.Second // after the start, whose users come first
	// rescuedChats is how long ago a chat was used last that hears of messages that may be lost.
	rescuedChats = 30 * 24 * time.Hour
)

// openDatabase opens the database. It moves a damaged one aside and continues with what can be saved.
func (a *App) openDatabase(ctx context.Context) error {
	path, backups := filepath.Join(a.cfg.Storage.Dir, DatabaseFile), filepath.Join(a.cfg.Storage.Dir, BackupsDir)
	if err := store.FinishRescue(path); err != nil {
		return err
	}
	err := a.Damaged
	if err == nil && store.Lost(path, backups) {
		err = fmt.Errorf("%w: %s is gone, or empty", orchestrator.ErrDamaged, path)
	}
	if err == nil {
		a.db, err = store.Open(ctx, path, a.Options.Store)
	}
	if errors.Is(err, orchestrator.ErrDamaged) {
		return a.rescue(ctx, path, backups, err)
	}
	return err
}

// rescue moves a damaged database aside and opens another in its place.
func (a *App) rescue(ctx context.Context, path, backups string, why error) error {
	a.Log.Error("the database is damaged", "err", why)
	left, lost := a.host.Left(ctx)
	if lost != nil {
		a.Log.Warn("look for runs that were left", "err", lost)
	}
	r := &store.Rescue{Path: path, Why: why, Backups: backups, Now: time.Now, Kept: func(run cli.RunID, output int64) bool {
		return slices.ContainsFunc(left, func(l cli.LeftRun) bool { return l.Run == run && l.OutputBegin <= output })
	}}
	r.Notices = func(db *store.DB) ([]orchestrator.Message, error) { return a.rescueNotices(ctx, db, r.Rescued) }
	err := r.Run(ctx)
	if err != nil {
		return err
	}
	a.Log.Error("the damaged database was moved aside", "to", r.Aside, "whole", r.Whole(), "log_lost", r.Stale, "tables_that_lack_rows", r.Lacking, "backup", r.Backup)
	a.db, err = store.Open(ctx, path, a.Options.Store)
	return err
}

// rescueNotices tells the owner what became of the database, and of one that lacks something also other chats.
func (a *App) rescueNotices(ctx context.Context, db *store.DB, r store.Rescued) (all []orchestrator.Message, err error) {
	owner := int64(ownerOf(a.cfg))
	choices, err := lang.OpenChoices(ctx, db, owner)
	if err != nil {
		return nil, err
	}
	if owner != 0 {
		text := rescueText(choices.Of(owner), r)
		all = append(all, message.Compose(orchestrator.ConversationID{Chat: owner}, message.Content{Text: render.Markdown(text)}))
	}
	if r.Whole() {
		return all, nil
	}
	chats, err := db.RecentChats(ctx, time.Now().Add(-rescuedChats))
	for _, in := range chats {
		if in.Chat == owner {
			continue
		}
		p := choices.Of(in.Chat)
		text := p.Text("alert.rescued-chat", p.Clock(r.Last.Local(), time.Now()))
		all = append(all, message.Compose(in, message.Content{Text: render.Markdown(text)}))
	}
	return all, err
}

// rescueText is what the owner reads.
func rescueText(p lang.Printer, r store.Rescued) string {
	now := time.Now()
	text := p.Text("alert.rescued")
	if r.Stale {
		text += " " + p.Text("alert.rescued-log")
	}
	switch backup := p.Clock(r.Backup.Local(), now); {
	case r.Whole():
		text += " " + p.Text("alert.rescued-whole")
	case r.Empty && r.Backup.IsZero():
		text += " " + p.Text("alert.rescued-nothing")
	case r.Empty:
		text += " " + p.Text("alert.rescued-backup", backup)
	case !r.Backup.IsZero():
		text += " " + p.Text("alert.rescued-partly", backup)
	case len(r.Lacking) > 0:
		text += " " + p.Text("alert.rescued-part")
	}
	if !r.Whole() {
		text += "\n\n" + p.Text("alert.rescued-care", p.Clock(r.Last.Local(), now))
	}
	return text + "\n\n" + p.Text("alert.rescued-aside", r.Aside)
}

// keepDatabase checks a large database that the start did not read whole, and then each day any, before it copies it.
func (a *App) keepDatabase(ctx context.Context) {
	path, dir := filepath.Join(a.cfg.Storage.Dir, DatabaseFile), filepath.Join(a.cfg.Storage.Dir, BackupsDir)
	check := a.db.Unchecked()
	for wait := backupCalm; ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		keep := a.now().Retention
		due := time.Now()
		if all := store.Backups(dir); len(all) > 0 {
			due = all[0].Made.Add(backupEvery)
		}
		backUp := keep.BackupsDays > 0 && !time.Now().Before(due)
		if wait = backupRetry; check || backUp {
			check = false
			if err := a.db.CheckPages(ctx); err != nil && ctx.Err() == nil {
				a.Log.Error("check the database", "err", err)
				continue // of one that is damaged the poller ends this process
			}
		}
		if state, _ := a.db.Disk(); !backUp || state != orchestrator.DiskWorks {
			continue
		}
		age, most := time.Duration(keep.BackupsDays)*24*time.Hour, int64(keep.BackupsMB)<<20
		if err := store.BackUp(ctx, path, dir, time.Now(), age, most); err != nil && ctx.Err() == nil {
			a.Log.Warn("back the database up; it is tried again", "in", backupRetry, "err", err)
		}
	}
}
