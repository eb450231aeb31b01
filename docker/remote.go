package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"ductor/cli"
	"ductor/internal/runner"
)

// place is a container as the place of runs.
type place struct {
	engine *Engine
	opts   Options
	name   string
	log    *slog.Logger
	notes  *notebook
	idle   func(ctx context.Context) bool // no run is alive in it
	rests  func(ctx context.Context) bool // all runs that are alive in it wait for their next turn
	watch  *watch

	sources sources

	turn chan struct{} // held by who makes or starts the container

	mu   sync.Mutex
	path string // PATH in it; empty until it was made or looked at
}

var _ runner.Remote = (*place)(nil)

// Dial starts a program in the container that carries bytes to and from the runner.
func (p *place) Dial(ctx context.Context, effort runner.Effort) (net.Conn, error) {
	ready := p.make
	if effort < runner.Make {
		ready = func(ctx context.Context) error { return p.wake(ctx, effort) }
	}
	if err := ready(ctx); err != nil {
		return nil, err
	}
	conn, err := p.exec(ctx, nil, runner.Connect, "root="+runsDir)
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) { // it ended just now
		if why := p.trouble(ctx); why != nil {
			return nil, why
		}
	}
	return conn, p.engine.failed("start a program in the sandbox", err)
}

// trouble says why nothing can be started in the container, as far as that is seen.
func (p *place) trouble(ctx context.Context) error {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if why := state(c, there); why != nil {
		return why
	}
	return nil
}

// wake sees to it that the container runs, if it is there. One of an older ductor, which had a supervisor for each agent, is
// removed with its agents: their turns show as interrupted.
func (p *place) wake(ctx context.Context, effort runner.Effort) error {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if there && !isOurs(c) {
		p.log.Info("a sandbox of an older ductor is removed", "sandbox", p.opts.Name)
		if err := p.engine.remove(ctx, c.ID); err != nil {
			return err
		}
		p.noteContainer("")
		there = false
	}
	why := state(c, there)
	switch {
	case why == nil:
		return nil
	case effort == runner.AsIs || !there:
		return why
	}
	return p.revive(ctx)
}

// isOurs says whether a container has a runner.
func isOurs(c container.InspectResponse) bool { return c.Config.Labels[labelRunner] != "" }

// Restart ends all that runs in the container at once, and starts it anew.
func (p *place) Restart(ctx context.Context) error {
	p.log.Warn("a sandbox is started anew: nothing more can be started in it", "sandbox", p.opts.Name)
	ctx, cancel := p.engine.work(ctx)
	defer cancel()
	return p.engine.failed("start the sandbox's container anew", p.engine.api.ContainerRestart(ctx, p.name, container.StopOptions{Timeout: new(int)}))
}

// Program is the runner that the container is to have.
func (p *place) Program() (id, path string) {
	id, _ = p.sources.runner(p.opts, "") // without it the one that is there is good
	return id, p.opts.Runner
}

// exec runs our program in the container as it is; its standard input and output are the connection. env is added to
// the container's.
func (p *place) exec(ctx context.Context, env []string, args ...string) (net.Conn, error) {
	ctx, cancel := p.engine.brief(ctx)
	defer cancel()
	created, err := p.engine.api.ContainerExecCreate(ctx, p.name, container.ExecOptions{
		Cmd: append([]string{programFile}, args...), Env: env, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	g := &guard{}
	h, err := p.engine.api.ContainerExecAttach(context.WithValue(ctx, guardKey{}, g), created.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	if !g.release() {
		h.Close()
		return nil, context.Cause(ctx)
	}
	p.watch.add(h.Conn)
	return &execConn{Conn: h.Conn, r: h.Reader, watch: p.watch}, nil
}

func (p *place) lock(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return p.engine.failed("prepare the sandbox", context.Cause(ctx))
	}
}

func (p *place) unlock() { <-p.turn }

// revive starts the container if it is there and does not run.
func (p *place) revive(ctx context.Context) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.unlock()
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if !there {
		return state(c, there)
	}
	return p.engine.revive(ctx, c)
}

// make sees to it that the container is there, is as it is wanted, and runs.
func (p *place) make(ctx context.Context) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.unlock()
	f, err := p.fit(ctx)
	if err != nil {
		return err
	}
	want, err := p.opts.blueprint(f)
	if err != nil {
		return err
	}
	p.setPath(f.path)
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if there && !p.outdated(ctx, c, want) {
		err := p.engine.revive(ctx, c)
		var own *Error
		if !errors.As(err, &own) || !own.gone {
			return err
		}
		p.log.Warn("a sandbox's container is made anew", "sandbox", p.opts.Name, "err", err)
	}
	if there {
		if err := p.engine.remove(ctx, c.ID); err != nil {
			return err
		}
		p.noteContainer("")
	}
	return p.create(ctx, want)
}

// fit makes the image that is wanted, if it is not there.
func (p *place) fit(ctx context.Context) (fitted, error) {
	f, err := p.engine.fit(ctx, p.opts, &p.sources)
	if ctx.Err() == nil && !isAway(err) {
		if err := p.notes.failed(err); err != nil {
			p.log.Warn("note how the making of an image ended", "sandbox", p.opts.Name, "err", err)
		}
	}
	return f, err
}

// outdated reports whether a container is to be replaced: it was made under other settings, or its image or what ductor adds to that is an
// old one and nothing is lost by it.
func (p *place) outdated(ctx context.Context, c container.InspectResponse, want blueprint) bool {
	differs := func(label string) bool { return c.Config.Labels[label] != want.Config.Labels[label] }
	switch {
	case differs(labelPolicy) && differs(labelSettings):
		p.log.Info("a sandbox is replaced, for its settings changed", "sandbox", p.opts.Name)
		return true
	case c.State.Dead || c.State.Status == container.StateRemoving:
		return true
	case c.State.Paused: // what runs in it cannot be asked before it is woken
		return false
	case differs(labelPolicy):
		return !c.State.Running || p.rests(ctx)
	case c.Config.Image != want.Config.Image: // another runner, or more that is added to an image
		return !c.State.Running || p.idle(ctx)
	}
	return false
}

func (p *place) create(ctx context.Context, want blueprint) error {
	c, err := p.createOnce(ctx, want)
	if cerrdefs.IsNotFound(err) { // the image was removed since it was looked for, as one that nothing used
		if _, err = p.fit(ctx); err == nil {
			c, err = p.createOnce(ctx, want)
		}
	}
	if err != nil {
		return p.createError(err)
	}
	ctx, cancel := p.engine.work(ctx)
	defer cancel()
	if err = p.seed(ctx, c.ID); err == nil {
		err = p.createError(p.engine.api.ContainerStart(ctx, c.ID, container.StartOptions{}))
	}
	if err != nil {
		done, cancel := p.engine.undo(ctx)
		defer cancel()
		return errors.Join(err, p.engine.remove(done, c.ID))
	}
	p.log.Info("a sandbox was made", "sandbox", p.opts.Name, "container", p.name, "engine", p.engine.host)
	before := owned(p.opts.Owner)
	before.Add("label", labelName+"="+p.opts.Name)
	if err := p.engine.removeShared(ctx, before); err != nil {
		p.log.Warn("remove what a container before it left", "sandbox", p.opts.Name, "err", err)
	}
	p.noteContainer(c.ID)
	return nil
}

func (p *place) createOnce(ctx context.Context, want blueprint) (container.CreateResponse, error) {
	ctx, cancel := p.engine.work(ctx)
	defer cancel()
	limits, err := p.engine.resources(ctx, p.opts)
	if err != nil {
		return container.CreateResponse{}, err
	}
	want.Host.Resources = limits
	return p.engine.api.ContainerCreate(ctx, &want.Config, &want.Host, nil, nil, p.name)
}

func (p *place) createError(err error) error {
	if err != nil && strings.Contains(err.Error(), "bind source path does not exist") {
		return &Error{
			Reason: fmt.Sprintf("a directory of the sandbox is not on the machine of Docker at %s (%s)", p.engine.host, lastCause(err)),
			Fix:    "make it there, at the same path", Err: err,
		}
	}
	return p.engine.failed("make the sandbox's container", err)
}

// noteContainer remembers that there is a container from now on, or none.
func (p *place) noteContainer(id string) {
	n := note{Container: id}
	if id != "" {
		n.Used = time.Now()
	}
	if err := p.notes.write(n); err != nil {
		p.log.Warn("note what container there is", "sandbox", p.opts.Name, "err", err)
	}
}

func (p *place) setPath(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = path
}

func (p *place) getPath() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == "" {
		return defaultPath
	}
	return p.path
}

// execConn is the standard input and output of a program in a container.
type execConn struct {
	net.Conn
	r    io.Reader
	left int  // bytes of standard output before the next head
	said bool // standard output has begun

	watch *watch
}

// Close ends the program's standard input and output.
func (c *execConn) Close() error {
	c.watch.remove(c.Conn)
	return c.Conn.Close()
}

// The streams of a connection without a terminal: each piece has a head of a stream's number, three zeroes and a
// length (Docker Engine API, "Attach to a container: Stream format").
const (
	streamHead   = 8
	streamStdout = 1
	streamStderr = 2
)

// Read gives standard output. A program that cannot be started says so where its output would be.
func (c *execConn) Read(p []byte) (int, error) {
	for c.left == 0 {
		var head [streamHead]byte
		if n, err := io.ReadFull(c.r, head[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("the engine says %q: %w", head[:n], err)
			}
			return 0, err
		}
		size := int(binary.BigEndian.Uint32(head[4:]))
		switch {
		case head[0] == streamStdout && !c.said && size > 0:
			c.left, c.said = size, true
			if err := c.refused(); err != nil {
				return 0, err
			}
		case head[0] == streamStdout:
			c.left = size
		case head[0] == streamStderr && size < 1<<20:
			if _, err := io.CopyN(io.Discard, c.r, int64(size)); err != nil {
				return 0, err
			}
		default:
			rest, _ := io.ReadAll(io.LimitReader(c.r, 300))
			return 0, fmt.Errorf("the engine says %q", string(head[:])+string(rest))
		}
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// mostRefusal is how long the engine's own words may be to be told from a program's output, in bytes.
const mostRefusal = 4 << 10

// refused says whether standard output is the engine's own words: that a program could not be started, in a container
// that ends or has no room for a process more. They are one piece of text that ends with CR LF, whatever they say (moby,
// postContainerExecStart). What our programs say first is a frame, which holds zeroes, or a line that ends with LF alone.
func (c *execConn) refused() error {
	if c.left > mostRefusal {
		return nil
	}
	piece := make([]byte, c.left)
	n, err := io.ReadFull(c.r, piece)
	text, ends := bytes.CutSuffix(piece, []byte("\r\n"))
	if err != nil || !ends || bytes.IndexByte(text, 0) >= 0 {
		c.r = io.MultiReader(bytes.NewReader(piece[:n]), c.r)
		return nil
	}
	c.left = 0
	return &Error{Reason: "no program can be started in the sandbox's container: " + cli.Shorten(lastLine(string(text)), 300)}
}
