package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/internal/runner"
)

// Launcher starts processes in one container. It creates the container when it is first needed. If the container cannot
// do something, the Launcher returns an *Error, and never starts anything on this machine. Safe for concurrent use.
type Launcher struct {
	*host.Launcher // uses runs, the client of ductor-runner in the container
	opts           Options
	remote         *remote
	runs           *runner.Client
	notes          *notebook
	log            *slog.Logger
	homes          homeCache
	copied         copiedFiles

	mu   sync.Mutex
	used time.Time // when a process was last started, by this or an earlier process of ductor
}

var (
	_ cli.Launcher = (*Launcher)(nil)
	_ cli.Bringer  = (*Launcher)(nil)
	_ cli.Preparer = (*Launcher)(nil)
	_ cli.Helper   = (*Launcher)(nil)
	_ cli.Enterer  = (*Launcher)(nil)
)

// Open returns a Launcher. The engine need not be available, because Open sends no request. The caller must Close the
// Launcher.
func Open(o Options) (*Launcher, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", o.Name, err)
	}
	l := &Launcher{opts: o, log: o.Logger, used: time.Now()}
	if l.notes, err = openNotebook(o.Dir, o); err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", o.Name, err)
	}
	if n, known := l.notes.read(); known && !n.Used.IsZero() {
		l.used = n.Used // keep the stored time: a start of ductor is no use of the container
	}
	name := o.containerName()
	l.remote = &remote{
		engine: o.Engine, opts: o, name: name, log: o.Logger, starting: make(chan struct{}, 1),
		notes: l.notes, idle: l.nothingRuns, resting: l.allResting,
		watch: &pauseWatch{engine: o.Engine, name: name, conns: map[net.Conn]bool{}},
	}
	l.runs = runner.OpenRemote(l.remote, o.MaxAway)
	l.Launcher, err = host.Open(host.Options{
		Remote: l.runs, Timing: o.Timing, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", o.Name, err)
	}
	return l, nil
}

// Start implements cli.Launcher. It removes environment variables that describe this machine.
func (l *Launcher) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	l.touch()
	if err := l.bring(ctx, cmd.Files, cmd.Files); err != nil {
		return nil, err
	}
	if err := l.renew(ctx); err != nil {
		return nil, err
	}
	cmd.Env = l.opts.environment(cmd.Env, l.remote.getPath())
	if err := l.copyLogin(ctx, cmd); err != nil {
		return nil, err
	}
	p, err := l.Launcher.Start(ctx, cmd)
	var own *Error
	switch {
	case isFull(err):
		return nil, l.remote.engine.diskFullError(err)
	case errors.As(err, &own): // err already describes the problem
		return nil, err
	case containsText(err, syscall.EAGAIN):
		return nil, noProcessSlot(err)
	case (errors.Is(err, runner.ErrNoRoom) || errors.Is(err, runner.ErrGone)) && ctx.Err() == nil:
		return nil, l.earlyExitError(ctx, err)
	}
	return p, err
}

// earlyExitError returns the error for a program that ended before it printed anything.
func (l *Launcher) earlyExitError(ctx context.Context, err error) error {
	if why := l.remote.checkRunning(ctx); why != nil {
		return why
	}
	return &Error{
		Reason: "the program in the sandbox's container ended immediately",
		Fix:    "raise its limits of memory and processes", Err: err,
	}
}

// Help implements cli.Helper.
func (l *Launcher) Help(ctx context.Context, env []string, args ...string) (files []byte, err error) {
	l.touch()
	if err := l.remote.ensure(ctx); err != nil {
		return nil, err
	}
	answer, err := l.remote.callRunner(ctx, nil, l.opts.environment(env, l.remote.getPath()), args...)
	if err == nil && answer.Error != "" {
		err = &Error{Reason: "ductor cannot access an agent's files in the sandbox (" + answer.Error + ")"}
	}
	return answer.Files, err
}

func (l *Launcher) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if err := l.notes.recordUse(l.used); err != nil {
		l.log.Warn("record the use of a sandbox", "sandbox", l.opts.Name, "err", err)
	}
}

// PrepareImage makes the image if it is missing, which may take minutes. It creates no container.
func (l *Launcher) PrepareImage(ctx context.Context) error {
	_, err := l.remote.fit(ctx)
	return err
}

// Prepare implements cli.Preparer. It creates the image and the container if they are missing, which may take minutes,
// and checks that the container works. It also replaces an outdated container. If only the image has changed, Prepare
// replaces the container only if this ends no program.
func (l *Launcher) Prepare(ctx context.Context) error {
	if err := l.renew(ctx); err != nil {
		return err
	}
	return l.runs.Prepare(ctx)
}

// renew creates the container, or replaces an outdated one. If the engine is unreachable, renew returns nil, because
// the container may be running. If the container is not running, the next connection to it fails.
func (l *Launcher) renew(ctx context.Context) error {
	if err := l.remote.ensure(ctx); err != nil && !isUnreachable(err) {
		return err
	}
	return nil
}

// Doing implements cli.Preparer. While the image is being made, it describes the current step. Otherwise it returns "".
func (l *Launcher) Doing() string {
	o := l.opts
	name, err := l.remote.sources.baseName(o)
	if err != nil || !o.Engine.isMaking(name) {
		return ""
	}
	switch {
	case o.Source != nil:
		return "its image comes from " + o.Source.host
	case o.Build != nil:
		return "its image is built, which takes minutes the first time"
	}
	return "its image is fetched"
}

// nothingRuns reports whether no run in the container has a process.
func (l *Launcher) nothingRuns(ctx context.Context) bool {
	return l.allRuns(ctx, func(cli.RunID) bool { return false })
}

func (l *Launcher) allResting(ctx context.Context) bool { return l.allRuns(ctx, l.Rests) }

// allRuns reports whether the condition f holds for all runs in the container that have a process.
func (l *Launcher) allRuns(ctx context.Context, f func(cli.RunID) bool) bool {
	runs, err := l.runs.List(ctx)
	for _, run := range runs {
		if (run.Alive || run.Processes > 0) && !f(cli.RunID(run.ID)) {
			return false
		}
	}
	return err == nil
}

// Size returns the size of the container in bytes, and when a program was last started in it. The size does not include
// the image, the home and the mounts. If there is no container, the size is 0.
func (l *Launcher) Size(ctx context.Context) (size int64, used time.Time, err error) {
	l.mu.Lock()
	used = l.used
	l.mu.Unlock()
	ctx, cancel := l.remote.engine.workContext(ctx)
	defer cancel()
	c, _, err := l.remote.engine.api.ContainerInspectWithRaw(ctx, l.remote.name, true)
	if cerrdefs.IsNotFound(err) {
		return 0, used, nil
	}
	if err != nil || c.SizeRw == nil {
		return 0, used, l.remote.engine.describe("measure the sandbox's container", err)
	}
	return *c.SizeRw, used, nil
}

// Retire removes the container if it was unused for at least the given time. The home remains.
func (l *Launcher) Retire(ctx context.Context, idle time.Duration) (retired bool, err error) {
	return l.whileUnused(ctx, idle, func(id string) (bool, error) {
		if id == "" {
			return false, nil
		}
		if err := l.remote.engine.remove(ctx, id); err != nil {
			return false, err
		}
		l.remote.noteContainer("")
		return true, nil
	})
}

// Forget removes the container and the home if the container was unused for at least the given time.
func (l *Launcher) Forget(ctx context.Context, idle time.Duration) (forgotten bool, err error) {
	return l.whileUnused(ctx, idle, func(string) (bool, error) {
		if err := l.remote.engine.Forget(ctx, l.opts.Owner, l.opts.Name); err != nil {
			return false, err
		}
		return true, l.notes.forget()
	})
}

// whileUnused calls f if no program is running in the container, and none was started for at least the given time. It
// passes the ID of the container, or "" if there is no container. No program can start during the call of f.
func (l *Launcher) whileUnused(ctx context.Context, idle time.Duration, f func(id string) (bool, error)) (done bool,
	err error) {
	if !l.unused(idle) {
		return false, nil
	}
	if err := l.remote.lock(ctx); err != nil {
		return false, err
	}
	defer l.remote.unlock()
	c, there, err := l.remote.engine.inspect(ctx, l.remote.name)
	if err != nil || there && c.State.Running && !l.nothingRuns(ctx) {
		return false, err
	}
	// A program that is just starting does not appear in the list of runs yet.
	if !l.unused(idle) {
		return false, nil
	}
	if !there {
		return f("")
	}
	return f(c.ID)
}

func (l *Launcher) unused(idle time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.used) >= idle
}

// Made reports whether this machine has ever created the container, according to the notes in Options.Dir. It does not
// ask the engine.
func (l *Launcher) Made() bool {
	n, _ := l.notes.read() // an unreadable note counts as none
	return n.Container != "" || !n.Used.IsZero()
}

// Runs returns a client for all runs in the container, no matter which process of ductor started them. The client
// starts a stopped container, but creates none; call Status first to avoid that. Close also closes the client.
func (l *Launcher) Runs() *runner.Client { return l.runs }

// Close detaches from the runs, which continue. Idempotent.
func (l *Launcher) Close() error {
	err := l.Launcher.Close()
	l.remote.watch.wait()
	return err
}

// Enter implements cli.Enterer.
func (l *Launcher) Enter(dir, home string) []string {
	words := []string{"docker"}
	if host := l.opts.Engine.Host(); host != "" {
		words = append(words, "--host", host)
	}
	return append(words, "exec", "--interactive", "--tty", "--workdir", dir,
		"--env", "HOME="+cmp.Or(home, homeDir), "--env", "PATH="+l.remote.getPath(), l.remote.name)
}
