package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
)

// Jobs returns the enabled jobs of the configuration, including the heartbeat.
func Jobs(cfg config.Config) ([]orchestrator.Job, error) {
	var jobs []orchestrator.Job
	for _, name := range slices.Sorted(maps.Keys(cfg.Jobs)) {
		c := cfg.Jobs[name]
		if !c.Enabled {
			continue
		}
		said, err := scheduleOf(c)
		if err != nil {
			return nil, fmt.Errorf("jobs.%s.schedule: %w", name, err)
		}
		j := jobOf(cfg, c.Target, c.TaskSettings, c.Quiet)
		if j.Rights, err = rightsOf("jobs."+name, c.Rights); err != nil {
			return nil, err
		}
		j.Name, j.Kind, j.Prompt, j.Schedule, j.Zone = name, orchestrator.JobScheduled, c.Prompt, said.Line, cmp.Or(said.Zone, c.Zone)
		j.Missed, j.Overlap = c.Missed, c.Overlap
		jobs = append(jobs, j)
	}
	if c := cfg.Heartbeat; c.Enabled {
		j := jobOf(cfg, c.Target, config.TaskSettings{Session: c.Session}, c.Quiet)
		var err error
		if j.Rights, err = rightsOf("heartbeat", c.Rights); err != nil {
			return nil, err
		}
		j.Name, j.Prompt, j.OKWord = "heartbeat", c.Prompt, c.OKWord
		jobs = append(jobs, heartbeat.Proactive(j, c.Every))
	}
	return jobs, nil
}

// jobOf gives what schedules and webhooks have in common.
func jobOf(cfg config.Config, at config.Target, m config.TaskSettings, q config.Quiet) orchestrator.Job {
	in, user := conversationOf(cfg, at)
	j := orchestrator.Job{
		Conversation: in, Person: user, JobTiming: orchestrator.JobTiming{Zone: q.Zone},
		JobTurn: orchestrator.JobTurn{
			Session: m.Session, Agent: cli.Agent(m.Agent), Model: cli.ModelID(m.Model), Effort: cli.Effort(m.Effort),
			Dir: m.Dir, Sandbox: m.Sandbox, Timeout: m.Timeout, Retries: m.Retries, Backoff: m.Backoff,
		},
	}
	if q.QuietFrom != "" {
		j.QuietFrom, j.QuietTo, j.QuietPolicy = q.QuietFrom, q.QuietTo, q.QuietPolicy
	}
	return j
}

// rightsOf gives what a job may do without asking; an error names the key of a rule that cannot be read.
func rightsOf(key string, r config.Rights) (orchestrator.Rights, error) {
	rights := orchestrator.Rights{
		Of: orchestrator.RightsOfJob, Mode: cli.PermissionMode(r.Permission), Rules: r.Rules, Tools: toolList(r.ToolLists),
	}
	if err := approval.CheckRights(rights); err != nil {
		return orchestrator.Rights{}, fmt.Errorf("%s.rules: %w", key, err)
	}
	return rights, nil
}

// conversationOf gives the conversation of a job and its user: in a group the owner.
func conversationOf(cfg config.Config, at config.Target) (orchestrator.ConversationID, orchestrator.PersonID) {
	owner := cfg.Owner()
	chat := cmp.Or(at.Chat, owner)
	user := owner
	if chat > 0 {
		user = chat
	}
	return orchestrator.ConversationID{Chat: chat, Topic: at.Topic}, orchestrator.PersonID(user)
}

// Hooks returns the webhooks of the configuration.
func Hooks(cfg config.Config) ([]webhook.Hook, error) {
	var hooks []webhook.Hook
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks.Hooks)) {
		c := cfg.Webhooks.Hooks[name]
		j := jobOf(cfg, c.Target, c.TaskSettings, c.Quiet)
		rights, err := rightsOf("webhooks.hooks."+name, c.Rights)
		if err != nil {
			return nil, err
		}
		j.Prompt, j.Rights = c.Prompt, rights
		hooks = append(hooks, webhook.Hook{
			Name: name, Auth: webhook.Auth(c.Auth), Secret: webhook.Secret(c.Secret.Reveal()), Job: j,
			BodyMax: int64(c.BodyMaxKB) << 10, PerMinute: c.PerMinute,
		})
	}
	return hooks, nil
}
