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

// Launcher starts processes in one container, which it makes when it is first needed. What it cannot do in there
// it refuses with an *Error; it never starts anything on this machine. Safe for concurrent use.
type Launcher struct {
	*host.Launcher // over the container
	opts           Options
	place          *place
	runs           *runner.Client
	notes          *notebook
	log            *slog.Logger
	homes          homeCache
	brought        broughtCache

	mu   sync.Mutex
	used time.Time // when a process was started last, by this process or a previous one
}

var (
	_ cli.Launcher = (*Launcher)(nil)
	_ cli.Bringer  = (*Launcher)(nil)
	_ cli.Preparer = (*Launcher)(nil)
	_ cli.Helper   = (*Launcher)(nil)
	_ cli.Enterer  = (*Launcher)(nil)
)

// Open makes a Launcher. The engine is not asked for anything before it is needed, and need not be there now. The
// caller must Close it.
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
		l.used = n.Used // a new ductor makes no container look used
	}
	name := o.containerName()
	l.place = &place{
		engine: o.Engine, opts: o, name: name, log: o.Logger, turn: make(chan struct{}, 1),
		notes: l.notes, idle: l.nothingRuns, rests: l.rests, watch: &watch{engine: o.Engine, name: name, conns: map[net.Conn]bool{}},
	}
	l.runs = runner.OpenRemote(l.place)
	l.Launcher, err = host.Open(host.Options{
		Remote: l.runs, MaxAge: o.MaxAge, OrphanAfter: o.OrphanAfter, Grace: o.Grace, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", o.Name, err)
	}
	return l, nil
}

// Start runs cmd in the container. Its environment is what was given without what describes this machine.
func (l *Launcher) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	l.touch()
	if err := l.bring(ctx, cmd.Files, cmd.Files); err != nil {
		return nil, err
	}
	if err := l.renew(ctx); err != nil {
		return nil, err
	}
	cmd.Env = l.opts.environment(cmd.Env, l.place.getPath())
	if err := l.logIn(ctx, cmd); err != nil {
		return nil, err
	}
	p, err := l.Launcher.Start(ctx, cmd)
	var own *Error
	switch {
	case isFull(err):
		return nil, l.place.engine.full(err)
	case errors.As(err, &own): // it has its words
		return nil, err
	case says(err, syscall.EAGAIN):
		return nil, crowded(err)
	case (errors.Is(err, runner.ErrNoRoom) || errors.Is(err, runner.ErrGone)) && ctx.Err() == nil:
		return nil, l.endedAtOnce(ctx, err)
	}
	return p, err
}

// endedAtOnce says why what was started ended before it said a word.
func (l *Launcher) endedAtOnce(ctx context.Context, err error) error {
	if why := l.place.trouble(ctx); why != nil {
		return why
	}
	return &Error{
		Reason: "what was started in the sandbox's container ended at once",
		Fix:    "see that its limits of memory and processes leave room for it", Err: err,
	}
}

// Help has ductor-runner in the container do what args say (see its main), with the environment of a program.
func (l *Launcher) Help(ctx context.Context, env []string, args ...string) (files []byte, err error) {
	l.touch()
	if err := l.place.make(ctx); err != nil {
		return nil, err
	}
	answer, err := l.place.hand(ctx, nil, l.opts.environment(env, l.place.getPath()), args...)
	if err == nil && answer.Error != "" {
		err = &Error{Reason: "files of an agent in the sandbox cannot be looked after (" + answer.Error + ")"}
	}
	return answer.Files, err
}

func (l *Launcher) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if err := l.notes.used(l.used); err != nil {
		l.log.Warn("that a sandbox is used", "sandbox", l.opts.Name, "err", err)
	}
}

// PrepareImage makes the image if need be, which may take minutes, and no container.
func (l *Launcher) PrepareImage(ctx context.Context) error {
	_, err := l.place.fit(ctx)
	return err
}

// Prepare makes the container now, and its image if need be, which may take minutes, and sees whether it works. A container
// that runs makes way for one of a newer image.
func (l *Launcher) Prepare(ctx context.Context) error {
	if err := l.renew(ctx); err != nil {
		return err
	}
	return l.runs.Prepare(ctx)
}

// renew makes the container that is wanted now. An engine that cannot be reached is no error here: the connection to the container
// shows whether it still runs.
func (l *Launcher) renew(ctx context.Context) error {
	if err := l.place.make(ctx); err != nil && !isAway(err) {
		return err
	}
	return nil
}

// Doing says what the image is waited for, if it is.
func (l *Launcher) Doing() string {
	o := l.opts
	name, err := l.place.sources.baseName(o)
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

// nothingRuns reports whether no run is alive in the container.
func (l *Launcher) nothingRuns(ctx context.Context) bool {
	return l.runsOnly(ctx, func(cli.RunID) bool { return false })
}

// rests reports whether all runs that are alive in the container wait for their next turn.
func (l *Launcher) rests(ctx context.Context) bool { return l.runsOnly(ctx, l.Rests) }

// runsOnly reports whether no run is alive in the container but those that may be.
func (l *Launcher) runsOnly(ctx context.Context, may func(cli.RunID) bool) bool {
	runs, err := l.runs.List(ctx)
	for _, run := range runs {
		if (run.Alive || run.Processes > 0) && !may(cli.RunID(run.ID)) {
			return false
		}
	}
	return err == nil
}

// Size is how many bytes the container holds besides its image, its home and what it shares with this machine, and
// when something was started in it last. 0 if there is no container.
func (l *Launcher) Size(ctx context.Context) (size int64, used time.Time, err error) {
	l.mu.Lock()
	used = l.used
	l.mu.Unlock()
	ctx, cancel := l.place.engine.work(ctx)
	defer cancel()
	c, _, err := l.place.engine.api.ContainerInspectWithRaw(ctx, l.place.name, true)
	if cerrdefs.IsNotFound(err) {
		return 0, used, nil
	}
	if err != nil || c.SizeRw == nil {
		return 0, used, l.place.engine.failed("measure the sandbox's container", err)
	}
	return *c.SizeRw, used, nil
}

// Retire removes the container when nothing runs in it and nothing was started for so long. The home stays.
func (l *Launcher) Retire(ctx context.Context, idle time.Duration) (retired bool, err error) {
	return l.whileUnused(ctx, idle, func(id string) (bool, error) {
		if id == "" {
			return false, nil
		}
		if err := l.place.engine.remove(ctx, id); err != nil {
			return false, err
		}
		l.place.noteContainer("")
		return true, nil
	})
}

// Forget removes the container and the home when nothing runs in it and nothing was started for so long.
func (l *Launcher) Forget(ctx context.Context, idle time.Duration) (forgotten bool, err error) {
	return l.whileUnused(ctx, idle, func(string) (bool, error) {
		if err := l.place.engine.Forget(ctx, l.opts.Owner, l.opts.Name); err != nil {
			return false, err
		}
		return true, l.notes.forget()
	})
}

// whileUnused does something to the container, whose id is empty where there is none, while nothing can be started in
// it, if nothing was for so long and nothing runs.
func (l *Launcher) whileUnused(ctx context.Context, idle time.Duration, do func(id string) (bool, error)) (done bool, err error) {
	if !l.unused(idle) {
		return false, nil
	}
	if err := l.place.lock(ctx); err != nil {
		return false, err
	}
	defer l.place.unlock()
	c, there, err := l.place.engine.inspect(ctx, l.place.name)
	if err != nil || there && c.State.Running && !l.nothingRuns(ctx) {
		return false, err
	}
	if !l.unused(idle) { // what is being started has no run yet
		return false, nil
	}
	if !there {
		return do("")
	}
	return do(c.ID)
}

func (l *Launcher) unused(idle time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.used) >= idle
}

// Made says whether this machine remembers that there was a container, of this process or a previous one.
func (l *Launcher) Made() bool {
	n, _ := l.notes.read() // what cannot be read remembers nothing
	return n.Container != "" || !n.Used.IsZero()
}

// Runs answers questions about all that runs in the container, whichever ductor started it, and makes no container for it. One
// that was stopped is started; Status tells before. It is closed with the Launcher.
func (l *Launcher) Runs() *runner.Client { return l.runs }

// Close detaches from the runs, which continue. Idempotent.
func (l *Launcher) Close() error {
	err := l.Launcher.Close()
	l.place.watch.wait()
	return err
}

// Enter gives the words of a command line that runs something in a directory of the container; see cli.Enterer.
func (l *Launcher) Enter(dir, home string) []string {
	words := []string{"docker"}
	if host := l.opts.Engine.Host(); host != "" {
		words = append(words, "--host", host)
	}
	return append(words, "exec", "--interactive", "--tty", "--workdir", dir,
		"--env", "HOME="+cmp.Or(home, homeDir), "--env", "PATH="+l.place.getPath(), l.place.name)
}
