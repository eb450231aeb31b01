package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/runner/journal"
)

// Start starts an agent and attaches to it. ctx limits only the start. If the program does not exist, the error matches
// fs.ErrNotExist. The error for a missing working directory does not match it. If a run with this ID exists, the error
// matches fs.ErrExist. An ended run exists until Collect deletes it.
func (c *Client) Start(ctx context.Context, spec Spec) (*Run, error) {
	spec, err := c.prepare(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	ctx, started, err := c.beginStart(ctx)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer started()
	defer c.expectEnd(spec.ID)()
	run, err := c.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return run, nil
}

// beginStart registers a start, so that Close waits for it. The returned context is canceled when Close begins. The
// caller must call started when the start has succeeded or failed.
func (c *Client) beginStart(ctx context.Context) (starting context.Context, started func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starts.over() {
		return nil, nil, errClosed
	}
	c.starts.Add(1)
	starting, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.starts.ctx, func() { cancel(errClosed) })
	return starting, func() {
		stop()
		cancel(nil)
		c.starts.Done()
	}, nil
}

// leavingWait limits how long a start waits until a runner that is about to exit closes the connection. After
// leavingWait, the client closes the connection itself, because a runner from before November 2026 may wait until its
// client does so.
const leavingWait = 3 * time.Second

func (c *Client) start(ctx context.Context, spec Spec) (*Run, error) {
	for began := time.Now(); ; {
		l, err := c.connect(ctx, Make)
		if err != nil {
			return nil, err
		}
		r, err := l.ask(ctx, request{Op: opStart, Spec: &spec}, nil)
		var run *Run
		switch {
		case errors.Is(err, syscall.ESHUTDOWN): // the runner is about to exit
			if l.awaitClose(ctx); time.Since(began) > leavingWait {
				_ = l.conn.Close()
			}
			continue
		case err == nil:
			run, err = c.newHeldRun(l, r, 0)
		case !errors.Is(err, ErrGone) && ctx.Err() == nil: // the runner has refused the request
			return nil, err
		}
		if errors.Is(err, ErrGone) && ctx.Err() == nil {
			if run, err = c.Attach(ctx, spec.ID, 0); errors.Is(err, fs.ErrNotExist) ||
				errors.Is(err, ErrNoEnvironment) {
				continue // a new runner does not know the run, so start the run again
			}
		}
		if err != nil { // the agent may be running nevertheless, but no Run exists for it
			c.abandonStart(spec.ID)
		}
		return run, err
	}
}

// abandonStart ends the agent of a failed start, because the start may have failed after the agent began to run. Only
// Client.start calls it.
func (c *Client) abandonStart(id string) {
	c.starts.Go(func() {
		ctx, cancel := context.WithTimeout(c.life.ctx, connectWait)
		defer cancel()
		_, _ = c.askToEnd(ctx, request{Op: opCollect, Run: id}) // on failure, the runner ends the run as an orphan
	})
}

// prepare generates an ID if the spec has none, and resolves the program if the runner is on this machine.
func (c *Client) prepare(ctx context.Context, spec Spec) (_ Spec, err error) {
	if ctx.Err() != nil {
		return spec, context.Cause(ctx)
	}
	if spec.ID == "" {
		spec.ID = rand.Text()
	}
	if c.remote == nil {
		spec.Path, err = LookPath(spec.Path)
	}
	return spec, err
}

// resolve resolves the program in the runner's environment. It also checks the Spec, because an error from the kernel
// would be harder to understand.
func (s Spec) resolve() (_ Spec, err error) {
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return s, fmt.Errorf("%s is not a usable directory", s.Dir)
		}
	}
	if s.Path, err = LookPath(s.Path); err != nil {
		return s, err
	}
	return s, s.check()
}

// LookPath is like exec.LookPath, but returns an absolute path. The error matches fs.ErrNotExist if the program does
// not exist.
func LookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("find %s in PATH: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return filepath.Abs(path)
}

// RunVar is an environment variable of every process of a run. The runner uses it to find processes that left the
// agent's process group, session and process tree.
const RunVar = "DUCTOR_RUN"

// Mark returns the environment entry NAME=VALUE that marks the processes of a run.
func Mark(run string) string { return RunVar + "=" + run }

// Spec describes an agent to start. The runner starts it without a shell.
type Spec struct {
	// ID identifies the run. It has at most 64 letters, digits, - and _. If ID is empty, Start generates one. A caller
	// that chooses the ID can find out after a crash whether the agent was started.
	ID string `json:"id"`
	// Path is the program. A name without a slash is looked up in the PATH of the client, or of the remote environment.
	Path   string            `json:"path"`
	Args   []string          `json:"args"` // arguments, without the name of the program
	Dir    string            `json:"dir,omitempty"`
	Env    []string          `json:"env"`              // the complete environment; the runner adds RunVar
	Labels map[string]string `json:"labels,omitempty"` // description of the run, which the runner does not interpret
	Limits Limits            `json:"limits"`
}

// Limits limits a run. A zero field means the default. A negative duration means no limit.
type Limits struct {
	// MaxAge is how long the agent may run after its start or after the last change of the limits. Times in which the
	// machine is suspended count. Changes of the clock have no effect. The default is no limit.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// OrphanAfter is how long the agent may run without an attached client. The default is an hour.
	OrphanAfter time.Duration `json:"orphan_after,omitempty"`
	// LeftoverAfter is how long processes may continue after the agent's exit without an attached client. The default
	// is 10 s.
	LeftoverAfter time.Duration `json:"leftover_after,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL if the runner ends the agent without a client's request. The
	// default is 5 s.
	Grace time.Duration `json:"grace,omitempty"`
	// MaxJournal limits the bytes of output on disk. Output that an attached client has not read does not count. The
	// default is 64 MiB.
	MaxJournal int64 `json:"max_journal,omitempty"`
}

const (
	defaultOrphanAfter   = time.Hour
	defaultLeftoverAfter = 10 * time.Second
	defaultGrace         = 5 * time.Second
	defaultMaxJournal    = 64 << 20
	maxID                = 64
)

func (l Limits) withDefaults() Limits {
	l.MaxAge = cmp.Or(l.MaxAge, -1)
	l.OrphanAfter = cmp.Or(l.OrphanAfter, defaultOrphanAfter)
	l.LeftoverAfter = cmp.Or(l.LeftoverAfter, defaultLeftoverAfter)
	l.Grace = cmp.Or(l.Grace, defaultGrace)
	l.MaxJournal = max(cmp.Or(l.MaxJournal, defaultMaxJournal), journal.MinSize)
	return l
}

func checkID(id string) error {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("%q is not a valid run ID", id)
	}
	return nil
}

func (s Spec) check() error {
	if err := checkID(s.ID); err != nil {
		return err
	}
	if !filepath.IsAbs(s.Path) {
		return fmt.Errorf("program %q is not an absolute path", s.Path)
	}
	for _, text := range slices.Concat([]string{s.Path, s.Dir}, s.Args, s.Env) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("a command line, directory or environment cannot contain a zero byte")
		}
	}
	return nil
}

// environment returns the environment of the agent: s.Env, and the value of RunVar for this run.
func (s Spec) environment() []string {
	env := slices.DeleteFunc(slices.Clone(s.Env),
		func(entry string) bool { return strings.HasPrefix(entry, RunVar+"=") })
	return append(env, Mark(s.ID))
}

const hidden = "***"

// shown returns the command line for display and storage. It hides the values of flags and environment variables whose
// names suggest a secret.
func (s Spec) shown() []string {
	var secrets []string
	for _, entry := range s.Env {
		name, value, _ := strings.Cut(entry, "=")
		if secretName(name) && len(value) >= 6 {
			secrets = append(secrets, value)
		}
	}
	line := []string{s.Path}
	hideNext := false
	for _, arg := range s.Args {
		name, value, joined := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case hideNext && !isFlag:
			arg = hidden
		case isFlag && joined && secretName(name):
			arg = name + "=" + hidden
		default:
			for _, secret := range secrets {
				arg = strings.ReplaceAll(arg, secret, hidden)
			}
		}
		hideNext = isFlag && value == "" && !joined && secretName(name)
		line = append(line, arg)
	}
	return line
}

func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "passw", "api-key", "api_key", "apikey", "auth",
		"credential", "_key", "-key"},
		func(word string) bool { return strings.Contains(name, word) })
}
