package app

import (
	"cmp"
	"maps"
	"slices"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// Jobs returns the enabled jobs of the configuration. They include the heartbeat.
func Jobs(cfg config.Config) ([]orchestrator.Job, error) {
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
		j := jobOf(cfg, c.In, c.JobTurn, c.QuietHours)
		if err := approval.CheckRights(j.Rights); err != nil {
			return nil, cfg.Mistake(err, "jobs", name, "rules")
		}
		j.Name, j.Kind, j.Prompt, j.Schedule, j.Zone = name, orchestrator.JobScheduled, c.Prompt, said.Line, cmp.Or(said.Zone, c.Zone)
		j.Missed, j.Overlap = c.Missed, c.Overlap
		jobs = append(jobs, j)
	}
	if c := cfg.Heartbeat; c.Enabled {
		j := jobOf(cfg, c.In, orchestrator.JobTurn{Session: c.Session, Rights: c.Rights}, c.QuietHours)
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
func jobOf(cfg config.Config, in orchestrator.ConversationID, t orchestrator.JobTurn, q orchestrator.QuietHours) orchestrator.Job {
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
		t.Dir = realDir(environment.NewPolicy(cfg), in, t.Dir)
	}
	return orchestrator.Job{Conversation: in, Person: user, JobTiming: orchestrator.JobTiming{QuietHours: q}, JobTurn: t}
}

// realDir returns the real path of a directory in the configuration. ductor calls realDir when it starts or reloads the
// configuration. If ductor resolved the links later, an agent could have created a link to a directory with other
// limits. If the links lead to another environment, an agent in a sandbox may already have created them. In this case,
// realDir returns dir unchanged.
func realDir(policy environment.Policy, in orchestrator.ConversationID, dir string) string {
	if real := cli.RealPath(dir); policy.Of(real, in) == policy.Of(dir, in) {
		return real
	}
	return dir
}

// Hooks returns the webhooks of the configuration.
func Hooks(cfg config.Config) ([]webhook.Hook, error) {
	var hooks []webhook.Hook
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks.Hooks)) {
		c := cfg.Webhooks.Hooks[name]
		j := jobOf(cfg, c.In, c.JobTurn, c.QuietHours)
		if err := approval.CheckRights(j.Rights); err != nil {
			return nil, cfg.Mistake(err, "webhooks", "hooks", name, "rules")
		}
		j.Prompt = c.Prompt
		hooks = append(hooks, webhook.Hook{Name: name, Caller: c.Caller, Job: j})
	}
	return hooks, nil
}
