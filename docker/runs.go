package docker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"ductor/cli/host"
	"ductor/internal/runner"
	"ductor/internal/supervisor"
)

// supervised are the runs in a container, each under a supervisor of its own.
type supervised struct{ *supervisor.Root }

// runs opens the runs of a container.
func (p *place) runs(spares int) (host.Runs, error) {
	root, err := supervisor.Open("", supervisor.Options{Place: p, Spares: spares})
	if err != nil {
		return nil, err
	}
	return supervised{root}, nil
}

func (s supervised) Start(ctx context.Context, spec runner.Spec) (host.Run, error) {
	return s.hold(s.Root.Start(ctx, supervisor.Spec{
		ID: spec.ID, Path: spec.Path, Args: spec.Args, Dir: spec.Dir, Env: spec.Env, Labels: spec.Labels, Limits: supervisorLimits(spec.Limits),
	}))
}

func (s supervised) Attach(ctx context.Context, id string, offset int64) (host.Run, error) {
	return s.hold(s.Root.Attach(ctx, id, offset))
}

func (s supervised) Follow(ctx context.Context, id string, offset int64) (host.Run, error) {
	return s.hold(s.Root.Follow(ctx, id, offset))
}

func (s supervised) List(ctx context.Context) ([]runner.Info, error) {
	infos, err := s.Root.List(ctx)
	var all []runner.Info
	for _, i := range infos {
		all = append(all, infoOf(i))
	}
	return all, err
}

// supervisedRun is a run in a container.
type supervisedRun struct {
	*supervisor.Run
	root  *supervisor.Root
	times supervisor.Times // of what was printed before we attached
}

func (s supervised) hold(run *supervisor.Run, err error) (host.Run, error) {
	if err != nil {
		return nil, err
	}
	r := supervisedRun{Run: run, root: s.Root}
	if run.Info().OutputEnd > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), timesWait)
		defer cancel()
		if times, err := run.Times(ctx); err == nil { // else its supervisor is gone, and they are unknown
			r.times = times
		}
	}
	return r, nil
}

// timesWait is how long a supervisor may take to say when output was printed.
const timesWait = 5 * time.Second

func (r supervisedRun) Info() runner.Info           { return infoOf(r.Run.Info()) }
func (r supervisedRun) When(offset int64) time.Time { return r.times.At(offset) }
func (r supervisedRun) Stdout() host.Output         { return supervisedOutput{r.Run.Stdout()} }
func (r supervisedRun) Exit() runner.Exit           { return exitOf(r.Run.Exit()) }
func (r supervisedRun) Update(ctx context.Context, labels map[string]string, limits runner.Limits) error {
	l := supervisorLimits(limits)
	return r.Run.Update(ctx, labels, &l)
}

func (r supervisedRun) Inspect(ctx context.Context) (runner.Info, error) {
	i, err := r.Run.Inspect(ctx)
	return infoOf(i), err
}

// Stop ends the run, also when it was detached from: whoever has it by now.
func (r supervisedRun) Stop(ctx context.Context, grace time.Duration) error {
	err := r.Run.Stop(ctx, grace)
	if !errors.Is(err, supervisor.ErrDetached) {
		return err
	}
	again, err := r.root.Follow(context.WithoutCancel(ctx), r.ID(), 0)
	if errors.Is(err, fs.ErrNotExist) { // collected, and nothing is collected that lives
		return nil
	}
	if err != nil {
		return r.root.Kill(ctx, r.ID())
	}
	defer again.Detach()
	return again.Stop(ctx, grace)
}

type supervisedOutput struct{ *supervisor.Output }

func (o supervisedOutput) Read(p []byte) (int, error) {
	n, err := o.Output.Read(p)
	var lost *supervisor.LostError
	switch {
	case errors.As(err, &lost):
		err = &runner.LostError{From: lost.From, To: lost.To, Damaged: lost.Damaged}
	case errors.Is(err, supervisor.ErrDetached):
		err = runner.ErrDetached
	}
	return n, err
}

// keepResult is how long a supervisor lingers after its agent's end; the disk keeps more.
const keepResult = 2 * time.Second

func supervisorLimits(l runner.Limits) supervisor.Limits {
	return supervisor.Limits{
		MaxAge: l.MaxAge, OrphanAfter: l.OrphanAfter, LeftoverAfter: l.LeftoverAfter, KeepResult: keepResult, Grace: l.Grace, MaxSpool: l.MaxJournal,
	}
}

func infoOf(i supervisor.Info) runner.Info {
	info := runner.Info{
		ID: i.ID, Labels: i.Labels, Command: i.Command, Dir: i.Dir, PID: i.PID, Started: i.Started,
		Limits: runner.Limits{
			MaxAge: i.Limits.MaxAge, OrphanAfter: i.Limits.OrphanAfter, LeftoverAfter: i.Limits.LeftoverAfter, Grace: i.Limits.Grace, MaxJournal: i.Limits.MaxSpool,
		},
		Alive: i.Alive, Attached: i.Attached, AttachedBy: i.AttachedBy, Processes: i.Processes, Memory: i.Memory,
		OutputEnd: i.OutputEnd, InputEnd: i.InputEnd, InputClosed: i.InputClosed, Problem: i.Problem,
	}
	for _, m := range i.Members {
		info.Members = append(info.Members, runner.Member(m))
	}
	if i.Status != nil {
		info.Status = &runner.Status{Exit: exitOf(i.Status.Exit), Exited: i.Status.Exited, OutputEnd: i.Status.OutputEnd, Ended: i.Status.Ended}
	}
	return info
}

func exitOf(e supervisor.Exit) runner.Exit {
	return runner.Exit{Known: e.Known, Code: e.Code, Signal: e.Signal, By: e.By, OOM: e.OOM}
}
