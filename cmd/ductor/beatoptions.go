package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// jobsOf are the jobs of the configuration, the proactive prompt among them. One that is switched off is none.
func jobsOf(cfg config.Config) ([]heartbeat.Job, error) {
	var jobs []heartbeat.Job
	for _, name := range slices.Sorted(maps.Keys(cfg.Jobs)) {
		c := cfg.Jobs[name]
		if !c.Enabled {
			continue
		}
		said, err := scheduleOf(c)
		if err != nil {
			return nil, fmt.Errorf("jobs.%s.schedule: %w", name, err)
		}
		j := jobOf(cfg, c.Place, c.Manner, c.Quiet)
		if j.Rights, err = rightsOf("jobs."+name, c.Rights); err != nil {
			return nil, err
		}
		j.Name, j.Kind, j.Prompt, j.Schedule, j.Zone = name, heartbeat.KindSchedule, c.Prompt, said.Schedule, cmp.Or(said.Zone, c.Zone)
		j.Missed, j.Overlap = heartbeat.Missed(c.Missed), heartbeat.Overlap(c.Overlap)
		jobs = append(jobs, j)
	}
	if c := cfg.Heartbeat; c.Enabled {
		in, person := placeOf(cfg, c.Place)
		rights, err := rightsOf("heartbeat", c.Rights)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, heartbeat.Pulse{
			Name: "heartbeat", Conversation: in, Person: person, Every: c.Every, Prompt: c.Prompt, OKWord: c.OKWord,
			Session: heartbeat.SessionMode(c.Session), Rights: rights, Zone: c.Zone, Quiet: quietOf(c.Quiet),
		}.Job())
	}
	return jobs, nil
}

// jobOf is what schedules and webhooks have in common.
func jobOf(cfg config.Config, at config.Place, m config.Manner, q config.Quiet) heartbeat.Job {
	in, person := placeOf(cfg, at)
	return heartbeat.Job{
		Conversation: in, Person: person, Enabled: true, Zone: q.Zone, Quiet: quietOf(q),
		Session: heartbeat.SessionMode(m.Session), Agent: cli.Agent(m.Agent), Model: cli.ModelID(m.Model), Effort: cli.Effort(m.Effort),
		Dir: m.Dir, Sandbox: m.Sandbox, Timeout: m.Timeout, Retries: m.Retries, Backoff: m.Backoff,
	}
}

// rightsOf is what a task may do unasked; an error names the key of a rule that cannot be read.
func rightsOf(key string, r config.Rights) (orchestrator.Rights, error) {
	rights := orchestrator.Rights{
		Of: orchestrator.RightsOfJob, Mode: cli.PermissionMode(r.Permission), Rules: r.Rules, Tools: r.Tools,
	}
	if err := rights.Check(); err != nil {
		return orchestrator.Rights{}, fmt.Errorf("%s.rules: %w", key, err)
	}
	return rights, nil
}

// placeOf is where something runs and for whom: in a group for the owner.
func placeOf(cfg config.Config, at config.Place) (orchestrator.ConversationID, orchestrator.PersonID) {
	var owner int64
	if users := cfg.Telegram.AllowedUsers; len(users) > 0 {
		owner = users[0]
	}
	chat := cmp.Or(at.Chat, owner)
	person := owner
	if chat > 0 {
		person = chat
	}
	return orchestrator.ConversationID{Chat: chat, Topic: at.Topic}, orchestrator.PersonID(person)
}

func quietOf(q config.Quiet) heartbeat.Quiet {
	if q.QuietFrom == "" {
		return heartbeat.Quiet{}
	}
	return heartbeat.Quiet{From: q.QuietFrom, To: q.QuietTo, Policy: heartbeat.QuietPolicy(q.QuietPolicy)}
}

func hooksOf(cfg config.Config) ([]heartbeat.Hook, error) {
	var hooks []heartbeat.Hook
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks.Hooks)) {
		c := cfg.Webhooks.Hooks[name]
		j := jobOf(cfg, c.Place, c.Manner, c.Quiet)
		rights, err := rightsOf("webhooks.hooks."+name, c.Rights)
		if err != nil {
			return nil, err
		}
		j.Prompt, j.Rights = c.Prompt, rights
		hooks = append(hooks, heartbeat.Hook{
			Name: name, Auth: heartbeat.HookAuth(c.Auth), Secret: heartbeat.Secret(c.Secret.Reveal()), Job: j,
			BodyMax: int64(c.BodyMaxKB) << 10, PerMinute: c.PerMinute,
		})
	}
	return hooks, nil
}

// retention forgets what the owner limits; what is not limited is not looked at.
func (h *house) retention() *heartbeat.Retention {
	const day = 24 * time.Hour
	r := h.cfg.Retention
	limits := func(days, megabytes int) heartbeat.Limits {
		return heartbeat.Limits{Age: time.Duration(days) * day, Bytes: int64(megabytes) << 20}
	}
	var shelves []heartbeat.Kept
	for _, k := range []heartbeat.Kept{
		{Name: "uploads", Shelf: uploadsOf(h.cfg), Limits: limits(h.cfg.Storage.RetentionDays, r.UploadsMB)},
		{Name: "transcripts", Shelf: h.db.Transcripts(), Limits: limits(r.TranscriptsDays, r.TranscriptsMB)},
		{Name: "audit", Shelf: h.db.AuditTrail(), Limits: limits(r.AuditDays, r.AuditMB)},
		{Name: "runs", Shelf: h.db.JobRuns(), Limits: limits(r.RunsDays, r.RunsMB)},
		{Name: "homes of sessions", Shelf: h.homeShelf(), Limits: limits(r.HomesDays, r.HomesMB)},
		{Name: "containers", Shelf: h.containerShelf(), Limits: limits(0, r.ContainersMB)},
	} {
		if k.Limits != (heartbeat.Limits{}) {
			shelves = append(shelves, k)
		}
	}
	return heartbeat.NewRetention(heartbeat.RetentionOptions{Shelves: shelves, Now: time.Now, Logger: h.log, Every: pruneEvery})
}
