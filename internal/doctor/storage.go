package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/internal/store/sqlite"
)

func (d *doctor) checkStorage(ctx context.Context, cfg config.Config) {
	d.checkDatabase(ctx, filepath.Join(cfg.Storage.Dir, app.DatabaseFile))
	d.checkBackups(cfg)
	if err := sqlite.CheckDisk(cfg.Storage.Dir); err != nil {
		d.fail(disk, "under "+cfg.Storage.Dir+": "+err.Error(),
			"free space there or replace the disk, or set storage.dir to another")
	} else {
		d.ok(disk, "under "+cfg.Storage.Dir)
	}
	d.checkHome()
	switch info, err := os.Stat(cfg.Projects.DefaultDir); {
	case errors.Is(err, fs.ErrNotExist) && app.IsDefaultRoot(cfg):
		d.ok(defaultDir, cfg.Projects.DefaultDir+": made at the first start")
	case err != nil || !info.IsDir():
		d.fail(defaultDir, cfg.Projects.DefaultDir+": it is no directory", "create it, or set another")
	default:
		d.ok(defaultDir, cfg.Projects.DefaultDir)
	}
}

// checkHome checks the free space of the disk on which agents store their sessions. Without free space, agents start
// but never answer.
func (d *doctor) checkHome() {
	home, err := os.UserHomeDir()
	if err == nil {
		err = sqlite.CheckDisk(home)
	}
	if err != nil {
		d.fail(homeDisk, home+": "+err.Error(), "free space there: agents keep their sessions and log-ins in the home")
		return
	}
	d.ok(homeDisk, home)
}

// checkDatabase checks the database. It opens the file read-only, because ductor may be using the database.
func (d *doctor) checkDatabase(ctx context.Context, path string) {
	db, err := store.OpenReadOnly(ctx, path, store.Options{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.checkCanCreate(path)
	case errors.Is(err, sqlite.ErrOlder):
		d.ok(database, path+": of an earlier version; the next start brings it up to date")
	case err != nil:
		d.fail(database, path+": "+err.Error(), "start ductor: it moves the file aside and continues with a copy of it, or with the newest backup; or run: ductor restore")
	default:
		err := errors.Join(db.Close(), unix.Access(path, unix.W_OK), unix.Access(filepath.Dir(path), unix.W_OK))
		if err != nil {
			d.fail(database, path+": "+err.Error(), "let the user of ductor write that file and its directory")
			return
		}
		d.ok(database, path)
	}
}

// checkBackups reports the newest backup, and the directories with damaged databases.
func (d *doctor) checkBackups(cfg config.Config) {
	switch all := store.Backups(filepath.Join(cfg.Storage.Dir, app.BackupsDir)); {
	case len(all) > 0:
		d.ok(backup, fmt.Sprintf("%s, of %s", all[0].Path, all[0].Made.Local().Format(time.DateTime)))
	case cfg.Retention.BackupsDays == 0:
		d.warn(backup, "retention.backups_days is 0, so nothing can replace a damaged database", "set it to a number of days")
	default:
		d.ok(backup, "the first is made once ductor runs")
	}
	for _, aside := range store.DamagedDirs(cfg.Storage.Dir) {
		d.warn(damaged, aside+" holds a database that was damaged and was moved there", "delete that directory if "+
			"nothing is missing")
	}
}

// checkCanCreate checks that the first start of ductor can create the database.
func (d *doctor) checkCanCreate(path string) {
	dir := filepath.Dir(path)
	for dir != filepath.Dir(dir) && errors.Is(unix.Access(dir, unix.F_OK), fs.ErrNotExist) {
		dir = filepath.Dir(dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		d.fail(database, fmt.Sprintf("%s: it cannot be made: %s: %v", path, dir, err),
			"let the user of ductor write "+dir+", or set storage.dir to another")
		return
	}
	d.ok(database, path+": the first start makes it")
}

// checkJobs checks schedules and webhooks. It also reports how much old data ductor will delete next.
func (d *doctor) checkJobs(ctx context.Context, cfg config.Config) {
	if _, err := app.Hooks(cfg, environment.NewPolicy(cfg)); err != nil {
		d.fail(webhooks, err.Error(), "correct it in [webhooks]")
	}
	if all, err := app.Jobs(cfg, environment.NewPolicy(cfg)); err != nil {
		d.fail(jobs, err.Error(), "correct that job in the configuration; docs/schedules.md explains it")
	} else if len(all)+len(cfg.Webhooks.Hooks) > 0 {
		d.ok(jobs, fmt.Sprintf("%d by schedule, %d by webhook", len(all), len(cfg.Webhooks.Hooks)))
	}
	plan, err := app.PlanRetention(ctx, cfg)
	if err != nil {
		d.fail(forgetting, err.Error(), "let the user of ductor read storage.dir, and check [retention]")
	}
	for _, f := range plan {
		if f.Err != nil {
			d.fail(forgetting, f.Err.Error(), "let the user of ductor read what it names, and check [retention]")
			continue
		}
		d.ok(forgetting.named(f.Name), fmt.Sprintf("%d of %d would be deleted (%d KB)", f.Items, f.Items+f.LeftItems,
			f.Bytes>>10))
	}
}
