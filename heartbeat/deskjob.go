package heartbeat

import (
	"errors"
	"fmt"
	"strings"

	"ductor/orchestrator"
)

// A job as the chat has it, and as it is kept.

func view(j Job) orchestrator.Job {
	return orchestrator.Job{
		ID: orchestrator.JobID(j.ID), Kind: orchestrator.JobKind(j.Kind), Configured: j.Source == FromConfig,
		Conversation: j.Conversation, Person: j.Person, Name: j.Name, Prompt: j.Prompt, Schedule: j.Schedule, Zone: j.Zone, When: when(j),
		Paused: !j.Enabled, Session: string(j.Session), Agent: j.Agent, Model: j.Model, Effort: j.Effort, Dir: j.Dir,
		Sandbox: j.Sandbox, Timeout: j.Timeout, Rights: j.Rights, QuietFrom: j.Quiet.From, QuietTo: j.Quiet.To, QuietPolicy: string(j.Quiet.Policy),
		Missed: string(j.Missed), Overlap: string(j.Overlap), Retries: j.Retries, Backoff: j.Backoff,
	}
}

// when says when a job runs.
func when(j Job) string {
	if j.Kind == KindHook {
		return "when its webhook is called"
	}
	return strings.TrimSpace(Words(j.Schedule) + " " + j.Zone)
}

// kept is a filled job that may be; *orchestrator.BadJob for one that may work nowhere, or for too long.
func (d *Desk) kept(j orchestrator.Job) (Job, error) {
	if stale := d.opts.Stale; stale > 0 && j.Timeout >= stale {
		return Job{}, bad(fmt.Errorf("a time limit is shorter than %s, which is agents.stale_after in config.toml", spanText(stale)))
	}
	if j.Dir != "" {
		dir, err := d.opts.Directory(j.Dir)
		switch {
		case errors.Is(err, orchestrator.ErrOutsideRoot):
			return Job{}, bad(fmt.Errorf("%s is outside the places ductor may work in (projects.roots in config.toml)", j.Dir))
		case err != nil:
			return Job{}, bad(fmt.Errorf("there is no such directory: %s", j.Dir))
		}
		j.Dir = dir
	}
	source := FromChat
	if j.Configured {
		source = FromConfig
	}
	return Job{
		ID: JobID(j.ID), Name: j.Name, Kind: Kind(j.Kind), Source: source, Conversation: j.Conversation, Person: j.Person,
		Prompt: j.Prompt, Schedule: j.Schedule, Zone: j.Zone, Enabled: !j.Paused, Session: SessionMode(j.Session),
		Agent: j.Agent, Model: j.Model, Effort: j.Effort, Dir: j.Dir, Sandbox: j.Sandbox, Timeout: j.Timeout, Rights: j.Rights,
		Quiet:  Quiet{From: j.QuietFrom, To: j.QuietTo, Policy: QuietPolicy(j.QuietPolicy)},
		Missed: Missed(j.Missed), Overlap: Overlap(j.Overlap), Retries: j.Retries, Backoff: j.Backoff,
	}.filled(), nil
}

// wrongJob is an error in what somebody wrote, not in what keeps it.
type wrongJob struct{ error }

func (e *wrongJob) Unwrap() error { return e.error }
