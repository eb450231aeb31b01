package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/orchestrator"
)

// Desk is what the chat does with the jobs of a Scheduler. Safe for concurrent use.
type Desk struct {
	s    *Scheduler
	opts DeskOptions
}

// DeskOptions configure a Desk. Directory is required.
type DeskOptions struct {
	// Directory says whether a job may work in a directory, and gives it as an absolute path; see
	// orchestrator.Orchestrator.Directory.
	Directory func(path string) (string, error)
	// Stale is when a run counts as stale: a time limit is to be shorter. 0 is never.
	Stale time.Duration
}

var _ orchestrator.Jobs = (*Desk)(nil)

// NewDesk makes a Desk.
func NewDesk(s *Scheduler, opts DeskOptions) *Desk { return &Desk{s: s, opts: opts} }

// MostJobs bounds the jobs that people make in one conversation.
const MostJobs = 50

// Jobs implements orchestrator.Jobs.
func (d *Desk) Jobs(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.JobStanding, error) {
	all, err := d.s.List(ctx, in)
	if err != nil {
		return nil, err
	}
	var shown []orchestrator.JobStanding
	for _, st := range all {
		shown = append(shown, d.standing(st))
	}
	return shown, nil
}

// Job implements orchestrator.Jobs.
func (d *Desk) Job(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID) (orchestrator.JobStanding, error) {
	return d.give(d.s.Get(ctx, JobID(id), in))
}

// JobRuns implements orchestrator.Jobs.
func (d *Desk) JobRuns(ctx context.Context, id orchestrator.JobID, in orchestrator.ConversationID, limit int) ([]orchestrator.JobRun, error) {
	st, err := d.s.Get(ctx, JobID(id), in)
	if err != nil {
		return nil, told(err)
	}
	runs, err := d.s.Runs(ctx, JobID(id), in, limit)
	if err != nil {
		return nil, told(err)
	}
	var shown []orchestrator.JobRun
	for _, r := range runs {
		shown = append(shown, d.run(st.Job, r))
	}
	return shown, nil
}

// ReadJob implements orchestrator.Jobs.
func (d *Desk) ReadJob(text string) (orchestrator.Job, error) {
	said, prompt, err := ParseRequest(text, d.s.now(), d.s.opts.Zone)
	if err != nil {
		return orchestrator.Job{}, bad(err)
	}
	schedule, zone := said.parted()
	if prompt == "" {
		return orchestrator.Job{}, bad(fmt.Errorf("it runs %s, and what is to be asked then? Write it behind the schedule",
			Words(schedule)))
	}
	return view(Job{Prompt: prompt, Schedule: schedule, Zone: zone, Enabled: true}.filled()), nil
}

// ReadSchedule implements orchestrator.Jobs.
func (d *Desk) ReadSchedule(text, zone string) (schedule, named string, err error) {
	said, err := ParseSentence(text, d.s.now(), d.zone(Job{Zone: zone}))
	if err != nil {
		return "", "", bad(err)
	}
	schedule, named = said.parted()
	return schedule, cmp.Or(named, zone), nil
}

// parted gives the schedule without a zone that is a part of it.
func (s Said) parted() (schedule, zone string) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if text, ok := strings.CutPrefix(s.Schedule, prefix); ok {
			zone, rest, _ := strings.Cut(text, " ")
			return strings.TrimSpace(rest), zone
		}
	}
	return s.Schedule, s.Zone
}

// CheckJob implements orchestrator.Jobs.
func (d *Desk) CheckJob(j orchestrator.Job) (orchestrator.JobStanding, error) {
	kept, err := d.kept(j)
	if err != nil {
		return orchestrator.JobStanding{}, err
	}
	kept.Created = d.s.now()
	next, err := d.s.reckon(kept)
	if err != nil {
		return orchestrator.JobStanding{}, bad(err)
	}
	return d.standing(Standing{Job: kept, Next: next}), nil
}

// AddJob implements orchestrator.Jobs.
func (d *Desk) AddJob(ctx context.Context, j orchestrator.Job) (orchestrator.JobStanding, error) {
	st, err := d.s.Get(ctx, JobID(j.ID), j.Conversation)
	if err == nil || !errors.Is(err, ErrNoJob) {
		return d.give(st, err)
	}
	all, err := d.s.List(ctx, j.Conversation)
	if err != nil {
		return orchestrator.JobStanding{}, err
	}
	if len(slices.DeleteFunc(all, func(st Standing) bool { return st.Job.Source != FromChat })) >= MostJobs {
		return orchestrator.JobStanding{}, orchestrator.ErrJobsFull
	}
	kept, err := d.kept(j)
	if err != nil {
		return orchestrator.JobStanding{}, err
	}
	return d.changed(d.s.Add(ctx, kept))
}

// EditJob implements orchestrator.Jobs.
func (d *Desk) EditJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press, change func(*orchestrator.Job) error) (orchestrator.JobStanding, error) {
	return d.changed(d.s.Edit(ctx, JobID(id), by.Conversation, func(j *Job) error {
		wanted := view(*j)
		if err := change(&wanted); err != nil {
			return err
		}
		kept, err := d.kept(wanted)
		if err != nil {
			return err
		}
		kept.OKWord, kept.Kind = j.OKWord, j.Kind
		*j = kept
		return nil
	}))
}

// PauseJob implements orchestrator.Jobs.
func (d *Desk) PauseJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) (orchestrator.JobStanding, error) {
	return d.changed(d.s.Pause(ctx, JobID(id), by.Conversation))
}

// ResumeJob implements orchestrator.Jobs.
func (d *Desk) ResumeJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) (orchestrator.JobStanding, error) {
	return d.changed(d.s.Resume(ctx, JobID(id), by.Conversation))
}

// RunJob implements orchestrator.Jobs.
func (d *Desk) RunJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press, key string) (orchestrator.JobStanding, error) {
	_, err := d.s.RunNow(ctx, JobID(id), by.Conversation, key)
	switch {
	case errors.Is(err, ErrNoRoom):
		return orchestrator.JobStanding{}, orchestrator.ErrJobsFull
	case errors.Is(err, ErrNotCalled):
		return orchestrator.JobStanding{}, bad(err)
	case err != nil:
		return orchestrator.JobStanding{}, told(err)
	}
	return d.Job(ctx, id, by.Conversation)
}

// DeleteJob implements orchestrator.Jobs.
func (d *Desk) DeleteJob(ctx context.Context, id orchestrator.JobID, by orchestrator.Press) error {
	return told(d.s.Delete(ctx, JobID(id), by.Conversation))
}

// give is a job as the chat has it.
func (d *Desk) give(st Standing, err error) (orchestrator.JobStanding, error) {
	if err != nil {
		return orchestrator.JobStanding{}, told(err)
	}
	return d.standing(st), nil
}

// changed is give for what checks a job: an error that is no other's is about what was written.
func (d *Desk) changed(st Standing, err error) (orchestrator.JobStanding, error) {
	var wrong *wrongJob
	if errors.As(err, &wrong) {
		return orchestrator.JobStanding{}, bad(wrong.error)
	}
	return d.give(st, err)
}

// told gives the errors that the chat tells apart.
func told(err error) error {
	switch {
	case errors.Is(err, ErrNoJob):
		return orchestrator.ErrNoJob
	case errors.Is(err, ErrFromConfig):
		return orchestrator.ErrJobConfigured
	}
	return err
}

// bad makes a sentence of an error.
func bad(err error) error {
	why := err.Error()
	if why != "" {
		why = strings.ToUpper(why[:1]) + why[1:]
	}
	if !strings.HasSuffix(why, ".") {
		why += "."
	}
	return &orchestrator.BadJob{Why: why}
}

// standing shows how a job stands.
func (d *Desk) standing(st Standing) orchestrator.JobStanding {
	shown := orchestrator.JobStanding{
		Job: view(st.Job), Runs: st.Runs, CostUSD: st.CostUSD, Open: st.Open, Same: st.Same,
	}
	if !st.Next.IsZero() && st.Job.Enabled {
		shown.Next = st.Next.In(d.zone(st.Job))
	}
	if st.Last != nil {
		last := d.run(st.Job, *st.Last)
		shown.Last = &last
	}
	return shown
}

func (d *Desk) zone(j Job) *time.Location {
	if loc, err := d.s.zone(j); err == nil {
		return loc
	}
	return d.s.opts.Zone
}

func (d *Desk) run(j Job, r Run) orchestrator.JobRun {
	shown := orchestrator.JobRun{
		Due: r.Due.In(d.zone(j)), State: string(r.State), Cause: string(r.Cause), StandsFor: r.StandsFor, Attempt: r.Attempt,
		Changed: r.Changed, Reason: r.Reason, CostUSD: r.CostUSD,
	}
	if !r.Ended.IsZero() {
		shown.Ended = r.Ended.In(d.zone(j))
	}
	return shown
}
