package app

import (
	"cmp"
	"maps"
	"slices"

	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// Jobs returns the enabled jobs of the configuration. They include the heartbeat. policy is the one of the start, also
// for a configuration that ductor reloads.
func Jobs(cfg config.Config, policy environment.Policy) ([]orchestrator.Job, error) {
	var jobs []orchestrator.Job
	for _, name := range slices.Sorted(maps.Keys(cfg.Jobs)) {
		c := cfg.Jobs[name]
		if !c.Enabled {
			continue
		}
		said, err := scheduleOf(c)
		if err != nil {
			return nil, cfg.Mistake(err, "jobs", name, "schedule")
		}
		j := jobOf(cfg, policy, c.In, c.JobTurn, c.QuietHours)
		if err := approval.CheckRights(j.Rights); err != nil {
			return nil, cfg.Mistake(err, "jobs", name, "rules")
		}
		j.Name, j.Kind, j.Prompt, j.Schedule, j.Zone = name, orchestrator.JobScheduled, c.Prompt, said.Line, cmp.Or(said.Zone, c.Zone)
		j.Missed, j.Overlap = c.Missed, c.Overlap
		jobs = append(jobs, j)
	}
	if c := cfg.Heartbeat; c.Enabled {
		j := jobOf(cfg, policy, c.In, orchestrator.JobTurn{Session: c.Session, Rights: c.Rights}, c.QuietHours)
		if err := approval.CheckRights(j.Rights); err != nil {
			return nil, cfg.Mistake(err, "heartbeat", "rules")
		}
		j.Name, j.Prompt, j.OKWord = "heartbeat", c.Prompt, c.OKWord
		jobs = append(jobs, heartbeat.Proactive(j, c.Every))
	}
	return jobs, nil
}

// jobOf creates a job from the settings that schedules and webhooks have in common. The user of a job in a private chat
// is the user of the chat. The user of a job in a group is the owner of ductor.
func jobOf(cfg config.Config, policy environment.Policy, in orchestrator.ConversationID, t orchestrator.JobTurn,
	q orchestrator.QuietHours) orchestrator.Job {
	in.Chat = cmp.Or(in.Chat, cfg.Owner())
	user := orchestrator.PersonID(cfg.Owner())
	if in.Chat > 0 {
		user = orchestrator.PersonID(in.Chat)
	}
	if !q.Quiet() {
		q.QuietPolicy = ""
	}
	t.Rights.Of = orchestrator.RightsOfJob
	if t.Dir != "" {
		t.Dir = policy.Real(t.Dir)
	}
	return orchestrator.Job{Conversation: in, Person: user, JobTiming: orchestrator.JobTiming{QuietHours: q}, JobTurn: t}
}

// Hooks returns the webhooks of the configuration.
func Hooks(cfg config.Config, policy environment.Policy) ([]webhook.Hook, error) {
	var hooks []webhook.Hook
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks.Hooks)) {
		c := cfg.Webhooks.Hooks[name]
		j := jobOf(cfg, policy, c.In, c.JobTurn, c.QuietHours)
		if err := approval.CheckRights(j.Rights); err != nil {
			return nil, cfg.Mistake(err, "webhooks", "hooks", name, "rules")
		}
		j.Prompt = c.Prompt
		hooks = append(hooks, webhook.Hook{Name: name, Caller: c.Caller, Job: j})
	}
	return hooks, nil
}
