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
)

// Start starts an agent and attaches to it. ctx bounds the start only. A program that is not there gives an error
// matching fs.ErrNotExist, a missing directory one that does not; an ID that was used before and not collected gives
// one matching fs.ErrExist.
func (c *Client) Start(ctx context.Context, spec Spec) (*Run, error) {
	spec, err := c.prepare(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	ctx, started, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer started()
	defer c.expect(spec.ID)()
	run, err := c.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return run, nil
}

// begin enters a start, whose context ends when Close begins. Call the function it returns at its end.
func (c *Client) begin(ctx context.Context) (starting context.Context, started func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return nil, nil, errClosed
	}
	c.starts.Add(1)
	starting, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.open, func() { cancel(errClosed) })
	return starting, func() {
		stop()
		cancel(nil)
		c.starts.Done()
	}, nil
}

func (c *Client) start(ctx context.Context, spec Spec) (*Run, error) {
	for {
		l, err := c.connect(ctx, Make)
		if err != nil {
			return nil, err
		}
		r, err := l.ask(ctx, request{Op: opStart, Spec: &spec}, nil)
		var run *Run
		switch {
		case errors.Is(err, syscall.ESHUTDOWN): // it leaves
			l.await(ctx)
			continue
		case err == nil:
			run, err = c.hold(l, r, 0)
		case !errors.Is(err, ErrGone) && ctx.Err() == nil: // nothing was started
			return nil, err
		}
		if errors.Is(err, ErrGone) && ctx.Err() == nil {
			if run, err = c.Attach(ctx, spec.ID, 0); errors.Is(err, fs.ErrNotExist) ||
				errors.Is(err, ErrNoEnvironment) {
				continue // its successor has no agent of this start
			}
		}
		if err != nil { // what may be started has no owner who knows of it
			c.giveUp(spec.ID)
		}
		return run, err
	}
}

// giveUp ends a run whose start was given up. Only a start calls it.
func (c *Client) giveUp(id string) {
	c.starts.Go(func() {
		ctx, cancel := context.WithTimeout(c.life, connectWait)
		defer cancel()
		_, _ = c.askToEnd(ctx, request{Op: opCollect, Run: id}) // else it ends as an orphan
	})
}

// prepare names the run, and finds its program where that is looked for here.
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

// resolve finds the program of a Spec where it is to run, and checks the Spec for better words than the system has.
func (s Spec) resolve() (Spec, error) {
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return s, fmt.Errorf("%s is not a directory that can be used", s.Dir)
		}
	}
	path, err := LookPath(s.Path)
	if err != nil {
		return s, err
	}
	s.Path = path
	return s, s.check()
}

// LookPath is exec.LookPath with a whole path as its answer. What is not there gives an error matching fs.ErrNotExist.
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

// RunVar is the environment variable that marks every process of a run, so that those are found that left
// the group, the session and the parent.
const RunVar = "DUCTOR_RUN"

// Mark is the entry of the environment that marks a run's processes.
func Mark(run string) string { return RunVar + "=" + run }

// Spec is an agent to start. There is no shell between us and it.
type Spec struct {
	// ID names the run: letters, digits, - and _, at most 64; one is made up when it is empty. Who chooses
	// it before the start can find out after a crash whether the agent was started.
	ID     string            `json:"id"`
	Path   string            `json:"path"` // a name without a slash is looked up in the PATH of the client, or of a runner elsewhere
	Args   []string          `json:"args"` // without the program itself
	Dir    string            `json:"dir,omitempty"`
	Env    []string          `json:"env"`              // the whole environment but RunVar, which is added
	Labels map[string]string `json:"labels,omitempty"` // what the run is for; opaque here
	Limits Limits            `json:"limits"`
}

// Limits bound a run. A zero means the default, a negative duration none.
type Limits struct {
	// MaxAge is how long the agent may run, counted from the start or from the last change of limits, time in
	// which the machine sleeps included; no change of the clock moves it. Default: none.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// OrphanAfter is how long the agent may run with no client attached. Default: an hour.
	OrphanAfter time.Duration `json:"orphan_after,omitempty"`
	// LeftoverAfter is how long what the agent left running may run on with no client attached. Default: 10 s.
	LeftoverAfter time.Duration `json:"leftover_after,omitempty"`
	// Grace is between TERM and KILL when the runner itself ends the agent. Default: 5 s.
	Grace time.Duration `json:"grace,omitempty"`
	// MaxJournal is how many bytes of output are kept on disk, beside what an attached client has not read. Default: 64
	// MiB.
	MaxJournal int64 `json:"max_journal,omitempty"`
}

const (
	defaultOrphanAfter   = time.Hour
	defaultLeftoverAfter = 10 * time.Second
	defaultGrace         = 5 * time.Second
	defaultMaxJournal    = 64 << 20
	minJournal           = 4 << 10
	maxID                = 64
)

// withDefaults replaces every zero.
func (l Limits) withDefaults() Limits {
	l.MaxAge = cmp.Or(l.MaxAge, -1)
	l.OrphanAfter = cmp.Or(l.OrphanAfter, defaultOrphanAfter)
	l.LeftoverAfter = cmp.Or(l.LeftoverAfter, defaultLeftoverAfter)
	l.Grace = cmp.Or(l.Grace, defaultGrace)
	l.MaxJournal = max(cmp.Or(l.MaxJournal, defaultMaxJournal), minJournal)
	return l
}

func checkID(id string) error {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("%q is no run id", id)
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
			return fmt.Errorf("a command line, directory or environment cannot hold a zero byte")
		}
	}
	return nil
}

// environment is what the agent gets: the given one, and the run's mark in place of any other.
func (s Spec) environment() []string {
	env := slices.DeleteFunc(slices.Clone(s.Env),
		func(entry string) bool { return strings.HasPrefix(entry, RunVar+"=") })
	return append(env, Mark(s.ID))
}

const hidden = "***"

// shown is the command line as it may be written down: what looks like a secret is hidden, by the name of
// the flag before it or because it is in the environment under such a name.
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
