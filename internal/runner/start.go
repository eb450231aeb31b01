package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Start starts an agent and attaches to it. ctx bounds the start only. A program that is not there gives an error matching
// fs.ErrNotExist, a missing directory one that does not; an ID that was used before and not collected gives one matching
// fs.ErrExist.
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
			if run, err = c.Attach(ctx, spec.ID, 0); errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoEnvironment) {
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
