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

// remote is the container of a Launcher. The Launcher reaches the container through the engine. remote implements
// runner.Remote.
type remote struct {
	engine  *Engine
	opts    Options
	name    string
	log     *slog.Logger
	notes   *notebook
	idle    func(ctx context.Context) bool // reports whether no run in the container has a process
	resting func(ctx context.Context) bool // reports whether each process in the container waits for its next turn
	watch   *pauseWatch

	sources sources

	starting chan struct{} // mutex for creating and starting the container

	mu   sync.Mutex
	path string // PATH in the container; empty until known
}

var _ runner.Remote = (*remote)(nil)

// Dial implements runner.Remote. The connection leads to a program in the container that connects to the runner.
func (p *remote) Dial(ctx context.Context, effort runner.Effort) (net.Conn, error) {
	ready := p.ensure
	if effort < runner.Make {
		ready = func(ctx context.Context) error { return p.wake(ctx, effort) }
	}
	if err := ready(ctx); err != nil {
		return nil, err
	}
	conn, err := p.exec(ctx, nil, runner.Connect, "root="+runsDir)
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) { // the container has just stopped
		if why := p.checkRunning(ctx); why != nil {
			return nil, why
		}
	}
	return conn, p.engine.describe("start a program in the sandbox", err)
}

// checkRunning returns the reason why no program can start in the container, or nil if it finds none.
func (p *remote) checkRunning(ctx context.Context) error {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if why := stoppedError(c, there); why != nil {
		return why
	}
	return nil
}

// wake starts an existing container if effort allows that. If the container has no ductor-runner, an older version of
// ductor created it. wake then removes the container, and the turns in it appear as interrupted.
func (p *remote) wake(ctx context.Context, effort runner.Effort) error {
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if there && !isOurs(c) {
		p.log.Info("remove a sandbox of an older ductor", "sandbox", p.opts.Name)
		if err := p.engine.remove(ctx, c.ID); err != nil {
			return err
		}
		p.noteContainer("")
		there = false
	}
	why := stoppedError(c, there)
	switch {
	case why == nil:
		return nil
	case effort == runner.AsIs || !there:
		return why
	}
	return p.startExisting(ctx)
}

func isOurs(c container.InspectResponse) bool { return c.Config.Labels[labelRunner] != "" }

// Restart implements runner.Remote. If the engine must not mount the directories again, Restart removes the container.
func (p *remote) Restart(ctx context.Context) error {
	p.log.Warn("restart a sandbox that cannot start processes", "sandbox", p.opts.Name)
	ctx, cancel := p.engine.workContext(ctx)
	defer cancel()
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil || !there {
		return err
	}
	if why := p.checkMountsOf(c); why != nil {
		return p.removeUnsafe(ctx, why)
	}
	err = p.engine.api.ContainerRestart(ctx, c.ID, container.StopOptions{Timeout: new(int)})
	if err != nil {
		return p.engine.describe("restart the sandbox's container", err)
	}
	if why := p.checkMounts(); why != nil {
		return p.removeUnsafe(ctx, why)
	}
	return nil
}

// checkMounts returns a *cli.Failure if Options.CheckMounts returns an error.
func (p *remote) checkMounts() error {
	if p.opts.CheckMounts == nil {
		return nil
	}
	if err := p.opts.CheckMounts(); err != nil {
		return &cli.Failure{Kind: cli.NoSandbox, Reason: err.Error(), Cause: err}
	}
	return nil
}

// checkMountsOf is checkMounts for an existing container. It also returns an error if the container mounts directories
// that the sandbox does not have now, because checkMounts checks only the directories of the sandbox.
func (p *remote) checkMountsOf(c container.InspectResponse) error {
	if !p.opts.mountsAll(c.HostConfig) {
		return &Error{Reason: "the sandbox's container has other directories than the sandbox has now",
			Fix: "your next message creates it again", gone: true}
	}
	return p.checkMounts()
}

// removeUnsafe removes the container because a check of its mounts returned the error why.
func (p *remote) removeUnsafe(ctx context.Context, why error) error {
	p.log.Warn("remove the container of a sandbox", "sandbox", p.opts.Name, "err", why)
	ctx, cancel := p.engine.cleanupContext(ctx)
	defer cancel()
	if err := p.engine.remove(ctx, p.name); err != nil {
		return err
	}
	p.noteContainer("")
	return nil
}

// Program implements runner.Remote. The ID is a digest.
func (p *remote) Program() (id, path string) {
	id, _ = p.sources.runner(p.opts, "") // on an error, id is empty, and any runner in the container is accepted
	return id, p.opts.Runner
}

// exec starts ductor-runner in the running container, with env in addition to the container's environment. The returned
// connection is the program's standard input and output.
func (p *remote) exec(ctx context.Context, env []string, args ...string) (net.Conn, error) {
	ctx, cancel := p.engine.requestContext(ctx)
	defer cancel()
	created, err := p.engine.api.ContainerExecCreate(ctx, p.name, container.ExecOptions{
		Cmd: append([]string{programFile}, args...), Env: env, AttachStdin: true, AttachStdout: true,
		AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	g := &guard{}
	h, err := p.engine.api.ContainerExecAttach(context.WithValue(ctx, guardKey{}, g), created.ID,
		container.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	if !g.release() {
		h.Close()
		return nil, context.Cause(ctx)
	}
	p.watch.watchConn(h.Conn)
	return &execConn{Conn: h.Conn, r: h.Reader, watch: p.watch}, nil
}

func (p *remote) lock(ctx context.Context) error {
	select {
	case p.starting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return p.engine.describe("prepare the sandbox", context.Cause(ctx))
	}
}

func (p *remote) unlock() { <-p.starting }

// startExisting starts the container. It returns an error if the container does not exist.
func (p *remote) startExisting(ctx context.Context) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.unlock()
	c, there, err := p.engine.inspect(ctx, p.name)
	if err != nil {
		return err
	}
	if !there {
		return stoppedError(c, there)
	}
	return p.start(ctx, c)
}

// start starts a stopped container, or unpauses a paused one. It checks the mounts before the engine mounts them. It
// checks them again afterwards, because an agent may have planted a link in between. The container is then removed.
func (p *remote) start(ctx context.Context, c container.InspectResponse) error {
	if c.State.Running || c.State.Paused { // the directories stay mounted, whatever replaces them
		return p.engine.startContainer(ctx, c)
	}
	if err := p.checkMountsOf(c); err != nil {
		return err
	}
	if err := p.engine.startContainer(ctx, c); err != nil {
		return err
	}
	why := p.checkMounts()
	if why == nil {
		return nil
	}
	return errors.Join(why, p.removeUnsafe(ctx, why))
}

// ensure makes sure that the container runs: it creates, replaces or starts the container as needed.
func (p *remote) ensure(ctx context.Context) error {
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
		err := p.start(ctx, c)
		var own *Error
		if !errors.As(err, &own) || !own.gone {
			return err
		}
		p.log.Warn("recreate the container of a sandbox", "sandbox", p.opts.Name, "err", err)
	}
	if there {
		if err := p.engine.remove(ctx, c.ID); err != nil {
			return err
		}
		p.noteContainer("")
	}
	return p.create(ctx, want)
}

// fit returns the sandbox's image, and creates the image if it is missing. It records in the notebook whether that
// failed.
func (p *remote) fit(ctx context.Context) (fittedImage, error) {
	f, err := p.engine.fit(ctx, p.opts, &p.sources)
	if ctx.Err() == nil && !isUnreachable(err) {
		if err := p.notes.recordImageResult(err); err != nil {
			p.log.Warn("record the result of making an image", "sandbox", p.opts.Name, "err", err)
		}
	}
	return f, err
}

// outdated reports whether to replace a container now. It returns true if the container is dead, or if its settings
// have changed. If only its image or its ductor-runner has changed, outdated returns true only if the container runs
// nothing that would be lost.
func (p *remote) outdated(ctx context.Context, c container.InspectResponse, want blueprint) bool {
	differs := func(label string) bool { return c.Config.Labels[label] != want.Config.Labels[label] }
	switch {
	case differs(labelPolicy) && differs(labelSettings):
		p.log.Info("replace a sandbox whose settings changed", "sandbox", p.opts.Name)
		return true
	case c.State.Dead || c.State.Status == container.StateRemoving:
		return true
	case c.State.Paused: // a program may run in the container, and ductor cannot find out while the container is paused
		return false
	case differs(labelPolicy):
		return !c.State.Running || p.resting(ctx)
	case c.Config.Image != want.Config.Image: // ductor-runner or a directory in the image changed
		return !c.State.Running || p.idle(ctx)
	}
	return false
}

func (p *remote) create(ctx context.Context, want blueprint) error {
	if err := p.checkMounts(); err != nil {
		return err
	}
	c, err := p.createOnce(ctx, want)
	if cerrdefs.IsNotFound(err) { // the image was removed meanwhile
		if _, err = p.fit(ctx); err == nil {
			c, err = p.createOnce(ctx, want)
		}
	}
	if err != nil {
		return p.createError(err)
	}
	ctx, cancel := p.engine.workContext(ctx)
	defer cancel()
	if err = p.seed(ctx, c.ID); err == nil {
		err = p.checkMounts()
	}
	if err == nil {
		err = p.createError(p.engine.api.ContainerStart(ctx, c.ID, container.StartOptions{}))
	}
	if err == nil {
		err = p.checkMounts() // an agent may have planted a link while the engine mounted the directories
	}
	if err != nil {
		done, cancel := p.engine.cleanupContext(ctx)
		defer cancel()
		return errors.Join(err, p.engine.remove(done, c.ID))
	}
	p.log.Info("created a sandbox", "sandbox", p.opts.Name, "container", p.name, "engine", p.engine.host)
	before := ownerFilter(p.opts.Owner)
	before.Add("label", labelName+"="+p.opts.Name)
	if err := p.engine.removeShared(ctx, before); err != nil {
		p.log.Warn("remove leftovers of a previous container", "sandbox", p.opts.Name, "err", err)
	}
	p.noteContainer(c.ID)
	return nil
}

func (p *remote) createOnce(ctx context.Context, want blueprint) (container.CreateResponse, error) {
	ctx, cancel := p.engine.workContext(ctx)
	defer cancel()
	limits, err := p.engine.resources(ctx, p.opts)
	if err != nil {
		return container.CreateResponse{}, err
	}
	want.Host.Resources = limits
	return p.engine.api.ContainerCreate(ctx, &want.Config, &want.Host, nil, nil, p.name)
}

func (p *remote) createError(err error) error {
	if err != nil && strings.Contains(err.Error(), "bind source path does not exist") {
		return &Error{
			Reason: fmt.Sprintf("a directory of the sandbox is not on the machine of Docker at %s (%s)",
				p.engine.host, lastCause(err)),
			Fix: "create it there, at the same path", Err: err,
		}
	}
	return p.engine.describe("make the sandbox's container", err)
}

// noteContainer stores the ID of the container in the note, or "" if the container was removed.
func (p *remote) noteContainer(id string) {
	n := note{Container: id}
	if id != "" {
		n.Used = time.Now()
	}
	if err := p.notes.write(n); err != nil {
		p.log.Warn("store the note of a container", "sandbox", p.opts.Name, "err", err)
	}
}

func (p *remote) setPath(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = path
}

func (p *remote) getPath() string {
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
	r       io.Reader
	left    int  // bytes of standard output until the next header
	started bool // whether standard output has started

	watch *pauseWatch
}

// Close closes the program's standard input and output.
func (c *execConn) Close() error {
	c.watch.remove(c.Conn)
	return c.Conn.Close()
}

// The engine multiplexes output without a terminal. Each piece has a header with the number of the stream, three zeros
// and a length (Docker Engine API, "Attach to a container: Stream format").
const (
	streamHead   = 8
	streamStdout = 1
	streamStderr = 2
)

// Read reads the program's standard output. If the program could not start, Read returns the engine's message as the
// error.
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
		case head[0] == streamStdout && !c.started && size > 0:
			c.left, c.started = size, true
			if err := c.startError(); err != nil {
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

// maxEngineText is the greatest length, in bytes, of a message in which the engine reports that a program could not
// start.
const maxEngineText = 4 << 10

// startError returns an error if the first piece of standard output comes from the engine instead of the program. The
// engine then reports that the program could not start, because the container is stopping or has no room for another
// process.
//
// Such a message is one piece of text that ends with CR LF (moby, postContainerExecStart). The output of ductor-runner
// never looks like this: it starts with a frame, which contains zeros, or with a line that ends with LF only.
func (c *execConn) startError() error {
	if c.left > maxEngineText {
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
	return &Error{Reason: "no program can be started in the sandbox's container: " +
		cli.Shorten(lastLine(string(text)), 300)}
}
