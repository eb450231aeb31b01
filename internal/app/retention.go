package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/store"
)

// retention returns the service that deletes data beyond the configured limits of age and size.
func retention(cfg func() config.Config, db *store.DB, envs *environment.Environments,
	log *slog.Logger) heartbeat.Retention {
	rules := func() []heartbeat.RetentionRule { return retentionRules(cfg(), db, envs) }
	return heartbeat.Retention{Rules: rules, Now: time.Now, Logger: log, Every: pruneEvery}
}

func retentionRules(cfg config.Config, db *store.DB, envs *environment.Environments) []heartbeat.RetentionRule {
	const day = 24 * time.Hour
	r := cfg.Retention
	limits := func(days, megabytes int) heartbeat.Limits {
		return heartbeat.Limits{Age: time.Duration(days) * day, Bytes: int64(megabytes) << 20}
	}
	var rules []heartbeat.RetentionRule
	for _, k := range []heartbeat.RetentionRule{
		{Name: "uploads", Dataset: heartbeat.Files(filepath.Join(cfg.Storage.Dir, environment.UploadsDir)),
			Limits: limits(cfg.Storage.RetentionDays, r.UploadsMB)},
		{Name: "transcripts", Dataset: db.Transcripts(), Limits: limits(r.TranscriptsDays, r.TranscriptsMB)},
		{Name: "audit", Dataset: db.AuditTrail(), Limits: limits(r.AuditDays, r.AuditMB)},
		{Name: "steps", Dataset: db.Steps(), Limits: limits(r.StepsDays, r.StepsMB)},
		{Name: "runs", Dataset: db.JobRuns(), Limits: limits(r.RunsDays, r.RunsMB)},
		{Name: "homes of sessions", Dataset: envs.HomesDataset(), Limits: limits(r.HomesDays, r.HomesMB)},
		{Name: "containers", Dataset: envs.ContainersDataset(), Limits: limits(0, r.ContainersMB)},
	} {
		if k.Limits != (heartbeat.Limits{}) {
			rules = append(rules, k)
		}
	}
	return rules
}

// PlanRetention returns the data that retention would delete next, without deleting it. It returns nil if the database
// cannot be read.
func PlanRetention(ctx context.Context, cfg config.Config) (plan []heartbeat.RetentionResult, err error) {
	db, err := store.OpenReadOnly(ctx, filepath.Join(cfg.Storage.Dir, DatabaseFile), store.Options{})
	if err != nil {
		return nil, nil // the check of the database reports the error
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	log := slog.New(slog.DiscardHandler)
	envs, err := environment.Open(cfg, environment.NewPolicy(cfg), log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, envs.Close()) }()
	return retention(func() config.Config { return cfg }, db, &envs, log).DryRun(ctx), nil
}

// prune deletes old data once a day: database rows, system prompts, snapshots and webhook deliveries.
func (a *App) prune(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		before := time.Now().AddDate(0, 0, -a.now().Storage.RetentionDays)
		if pruned, err := a.db.Prune(ctx, before); err != nil && ctx.Err() == nil {
			a.Log.Warn("delete old rows", "err", err)
		} else if err == nil {
			a.Log.Debug("deleted old rows", "updates", pruned.Updates, "messages", pruned.Messages, "cards",
				pruned.Cards)
		}
		if err := prunePrompts(filepath.Join(a.cfg.Storage.Dir, environment.PromptsDir),
			time.Now().Add(-promptsAge)); err != nil {
			a.Log.Warn("delete old system prompts", "err", err)
		}
		if days := a.now().Retention.StepsDays; days > 0 {
			if _, err := a.changes.Prune(ctx, time.Now().AddDate(0, 0, -days)); err != nil && ctx.Err() == nil {
				a.Log.Warn("delete old snapshots", "err", err)
			}
		}
		if _, err := a.db.PruneDeliveries(ctx, time.Now().Add(-webhook.RetentionAge)); err != nil && ctx.Err() == nil {
			a.Log.Warn("delete old deliveries", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// prunePrompts removes system prompts that no agent has used since the given time.
func prunePrompts(dir string, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
