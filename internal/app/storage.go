package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
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
	backupCalm  = 5 * time.Second // pause after the start: messages of users are more urgent than a backup
	// After a loss of data, ductor sends a message to the chats with turns in this period.
	rescuedChats = 30 * 24 * time.Hour
)

// openHostAndDatabase opens the launcher of this machine and the database at the same time. If the database is damaged,
// openHostAndDatabase replaces it.
func (a *App) openHostAndDatabase(ctx context.Context) error {
	var opening sync.WaitGroup
	var opened error
	opening.Go(func() { opened = a.openDatabase(ctx) })
	err := a.openHost(ctx)
	opening.Wait()
	if err == nil && errors.Is(opened, orchestrator.ErrDamaged) {
		opened = a.rescue(ctx, opened)
	}
	if err != nil {
		return err
	}
	return opened
}

func (a *App) databaseFile() string { return filepath.Join(a.cfg.Storage.Dir, DatabaseFile) }

func (a *App) backupsDir() string { return filepath.Join(a.cfg.Storage.Dir, BackupsDir) }

// openDatabase opens the database. It returns orchestrator.ErrDamaged if the file is damaged or was lost.
func (a *App) openDatabase(ctx context.Context) (err error) {
	path := a.databaseFile()
	if err := store.FinishRescue(path); err != nil {
		return err
	}
	if a.Damaged != nil {
		return a.Damaged
	}
	if store.Lost(path, a.backupsDir()) {
		return fmt.Errorf("%w: %s is gone, or empty", orchestrator.ErrDamaged, path)
	}
	a.db, err = store.Open(ctx, path, a.Options.Store)
	return err
}

// rescue replaces a damaged database with a copy of its rows or with a backup.
func (a *App) rescue(ctx context.Context, why error) error {
	a.Log.Error("the database is damaged", "err", why)
	left, lost := a.host.Left(ctx)
	if lost != nil {
		a.Log.Warn("list runs that are left", "err", lost)
	}
	r := &store.Rescue{Path: a.databaseFile(), Cause: why, Backups: a.backupsDir(), Now: time.Now,
		HasOutput: func(run cli.RunID, output int64) bool {
			return slices.ContainsFunc(left, func(l cli.LeftRun) bool {
				return l.Run == run && l.OutputBegin <= output
			})
		}}
	r.Notices = func(db *store.DB) ([]orchestrator.Message, error) { return a.rescueNotices(ctx, db, r.Rescued) }
	err := r.Run(ctx)
	if err != nil {
		return err
	}
	a.Log.Error("the damaged database was moved aside", "to", r.Dir, "copied", r.Copied, "log_lost", r.LostWrites,
		"backup", r.BackupTime)
	a.db, err = store.Open(ctx, r.Path, a.Options.Store)
	return err
}

// rescueNotices returns a message to the owner about a rescue. If data was lost, it also returns messages to other
// chats that were used recently.
func (a *App) rescueNotices(ctx context.Context, db *store.DB, r store.Rescued) (all []orchestrator.Message,
	err error) {
	owner := int64(ownerOf(a.cfg))
	choices, err := lang.OpenChoices(ctx, db, owner)
	if err != nil {
		return nil, err
	}
	if owner != 0 {
		text := rescueText(choices.Of(owner), r)
		all = append(all, message.Compose(orchestrator.ConversationID{Chat: owner},
			message.Content{Text: render.Markdown(text)}))
	}
	if r.Complete() {
		return all, nil
	}
	chats, err := db.RecentChats(ctx, time.Now().Add(-rescuedChats))
	for _, in := range chats {
		if in.Chat == owner {
			continue
		}
		p := choices.Of(in.Chat)
		text := p.Text("alert.rescued-chat", p.Clock(r.LastWrite.Local(), time.Now()))
		all = append(all, message.Compose(in, message.Content{Text: render.Markdown(text)}))
	}
	return all, err
}

func rescueText(p lang.Printer, r store.Rescued) string {
	now := time.Now()
	text := p.Text("alert.rescued")
	if r.LostWrites {
		text += " " + p.Text("alert.rescued-log")
	}
	switch {
	case r.Complete():
		text += " " + p.Text("alert.rescued-whole")
	case !r.BackupTime.IsZero():
		text += " " + p.Text("alert.rescued-backup", p.Clock(r.BackupTime.Local(), now))
	case !r.Copied:
		text += " " + p.Text("alert.rescued-nothing")
	}
	if !r.Complete() {
		text += "\n\n" + p.Text("alert.rescued-care", p.Clock(r.LastWrite.Local(), now))
	}
	return text + "\n\n" + p.Text("alert.rescued-aside", r.Dir)
}

// keepDatabase checks and backs up the database once a day. If store.Open has checked only a part of a large database,
// the first check is soon after the start.
func (a *App) keepDatabase(ctx context.Context) {
	store.RemoveDrafts(a.backupsDir())
	check := a.db.Unchecked()
	for wait := backupCalm; ; wait = backupRetry {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if tables := a.db.Unreadable(); len(tables) > 0 {
			a.Log.Error("skip stored rows that cannot be decoded", "tables", tables)
		}
		all := store.Backups(a.backupsDir())
		backUp := a.now().Retention.BackupsDays > 0 && (len(all) == 0 || time.Since(all[0].Made) >= backupEvery)
		if state, _ := a.db.Disk(); state != orchestrator.DiskWorks || !backUp && !check {
			continue
		}
		err := a.db.CheckPages(ctx)
		check = false
		if err == nil && backUp {
			keep := a.now().Retention
			age, most := time.Duration(keep.BackupsDays)*24*time.Hour, int64(keep.BackupsMB)<<20
			err = store.BackUp(ctx, a.databaseFile(), a.backupsDir(), time.Now(), age, most)
		}
		// Only log the error. If the database is damaged, App.Run returns an error.
		if err != nil && ctx.Err() == nil {
			a.Log.Error("check and back up the database", "retry", backupRetry, "err", err)
		}
		a.releaseMemory(ctx)
	}
}

// releaseMemory returns memory to the kernel after work that needed more than ductor usually does: the start, and the
// check and backup of the database.
func (a *App) releaseMemory(ctx context.Context) {
	if err := errors.Join(a.db.ReleaseMemory(ctx), a.ReleaseMemory()); err != nil && ctx.Err() == nil {
		a.Log.Info("return unused memory", "err", err)
	}
}
