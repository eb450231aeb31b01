package host

import (
	"context"
	"io"
	"time"

	"ductor/cli"
	"ductor/internal/runner"
)

// Runs starts and finds the runs of an environment: those of a runner on this machine, or what package docker has in a
// container. See runner.Client for what its methods promise.
type Runs interface {
	Start(ctx context.Context, spec runner.Spec) (Run, error)
	Attach(ctx context.Context, id string, offset int64) (Run, error)
	Follow(ctx context.Context, id string, offset int64) (Run, error)
	List(ctx context.Context) ([]runner.Info, error)
	Kill(ctx context.Context, id string) error
	Collect(ctx context.Context, id string) error
	LookPath(ctx context.Context, name string) (string, error)
	Close() error
}

// Run is a hold on one run. See runner.Run for what its methods promise; errors of Stdout are those of package runner.
type Run interface {
	ID() string
	PID() int
	Info() runner.Info
	Stdin() io.WriteCloser
	Stdout() Output
	StderrTail() string
	Done() <-chan struct{}
	Exit() runner.Exit
	When(offset int64) time.Time
	Interrupt() error
	Inspect(ctx context.Context) (runner.Info, error)
	Update(ctx context.Context, labels map[string]string, limits runner.Limits) error
	Forget(ctx context.Context, offset int64) error
	Stop(ctx context.Context, grace time.Duration) error
	Detach()
}

// Output is what a run prints.
type Output interface {
	io.Reader
	cli.Gatherer
}

// localRuns are the runs of a runner on this machine.
type localRuns struct{ *runner.Client }

// OpenRuns opens the runs in a directory of this machine. It starts nothing. The caller must Close them.
func OpenRuns(dir string, o runner.Options) (Runs, error) {
	c, err := runner.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return localRuns{c}, nil
}

func (l localRuns) Start(ctx context.Context, spec runner.Spec) (Run, error) {
	return local(l.Client.Start(ctx, spec))
}

func (l localRuns) Attach(ctx context.Context, id string, offset int64) (Run, error) {
	return local(l.Client.Attach(ctx, id, offset))
}

func (l localRuns) Follow(ctx context.Context, id string, offset int64) (Run, error) {
	return local(l.Client.Follow(ctx, id, offset))
}

func (l localRuns) LookPath(_ context.Context, name string) (string, error) {
	return runner.LookPath(name)
}

func local(r *runner.Run, err error) (Run, error) {
	if err != nil {
		return nil, err
	}
	return localRun{r}, nil
}

type localRun struct{ *runner.Run }

func (l localRun) Stdout() Output { return l.Run.Stdout() }
