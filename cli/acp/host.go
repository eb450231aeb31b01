package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
)

const (
	// leaveWait is how long an idle process may take to end by itself when its input ends.
	leaveWait = 300 * time.Millisecond
	stopSlack = 10 * time.Second // what stopping may take beyond the grace
	exitWait  = 2 * time.Second  // from the end of the output to that of the process
)

// host is one process of the agent and the sessions in it. It lives as long as a session is in it. Safe for
// concurrent use.
type host struct {
	provider *Provider
	key      string
	ids      string // begins the ids of requests, so that they differ from those of an earlier ductor

	ready chan struct{} // closed when it is started, or failed to
	life  context.Context
	end   context.CancelFunc // of starting, and of what is served

	// Valid once ready is closed.
	failed  *cli.Failure
	process cli.Process
	out     *writer
	caps    agentCapabilities
	hello   initialized
	quirks  Quirks // those of Options, and of an agent that is known to have some

	pumped  chan struct{}  // closed when the agent will print nothing any more
	serving sync.WaitGroup // what is served for the agent

	mu        sync.Mutex
	refs      int
	sessions  map[string]*session
	unclaimed map[string]*session      // of a run that was attached to: those that nobody goes on with yet
	calls     map[string]chan *message // our requests that wait for an answer, by id
	prompts   map[string]*session      // prompts that do
	next      int
	tainted   bool // takes no further session
	turns     int  // that run
	busy      int  // turns that run, or of which something may be left
	doomed    bool // what an aborted turn started may run in it: it ends with the last turn
	detached  bool // goes on without us
	served    int  // requests of the agent that are worked on
	past      bool // what is read was printed for an earlier ductor
	handled   int64
	garbage   []byte // the first line that cannot be read, or its beginning
	garbages  int
	readErr   error
}

// newHost makes a host with one session in it.
func newHost(p *Provider, key string) *host {
	h := &host{
		provider: p, key: key, ids: uuid.NewString()[:8], refs: 1, quirks: p.opts.Quirks,
		ready: make(chan struct{}), pumped: make(chan struct{}),
		sessions: map[string]*session{}, calls: map[string]chan *message{}, prompts: map[string]*session{},
	}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// start starts the process and shakes hands with it.
func (h *host) start(cmd cli.Command) {
	defer close(h.ready)
	o := h.provider.opts
	ctx, cancel := context.WithTimeout(h.life, o.StartLimit)
	defer cancel()
	process, err := o.Launcher.Start(ctx, cmd)
	if err != nil {
		h.failed = cli.StartFailure(h.provider.opts.Agent, err)
		close(h.pumped)
		return
	}
	h.talk(process, 0, -1)
	hello := initializeParams{
		ProtocolVersion: protocolVersion, ClientInfo: clientInfo{"ductor", "ductor", "1"},
		ClientCapabilities: capabilities{FS: fsCapabilities{!o.NoFiles, !o.NoFiles}, Terminal: !o.NoTerminals},
	}
	if err := h.call(ctx, methodInitialize, hello, &h.hello); err != nil {
		h.failed = h.notSpoken(err)
		return
	}
	if h.hello.ProtocolVersion != protocolVersion {
		h.failed = cli.Failf(cli.BadOutput, o.Agent, "it speaks version %d of the protocol, and ductor version %d",
			h.hello.ProtocolVersion, protocolVersion)
	}
	h.caps, h.quirks = h.hello.Capabilities, o.Quirks.of(h.hello.AgentInfo.Name)
}

// notSpoken is the failure of a program that did not answer the first request.
func (h *host) notSpoken(err error) *cli.Failure {
	f := h.provider.failure(err)
	if f.Kind == cli.TimedOut {
		f = cli.Failf(cli.BadOutput, h.provider.opts.Agent, "it did not answer when it was spoken to; its version may be too old")
		f.Cause = err
	}
	return f
}

// join counts one more session in; false if the host takes none.
func (h *host) join() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tainted || h.detached || h.refs == 0 {
		return false
	}
	h.refs++
	return true
}

// alone says whether there is one session only.
func (h *host) alone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refs <= 1
}

// taint keeps further sessions out.
func (h *host) taint() {
	h.mu.Lock()
	h.tainted = true
	h.mu.Unlock()
	h.provider.retire(h)
}

// parting is how a session leaves.
type parting struct {
	spoiled  bool // what it started may still run: the process takes no further session, and is not waited for
	detached bool // its turn goes on without us, and so does the process
}

// leave counts a session out. The last one ends the process with everything it started, or lets go of it.
func (h *host) leave(ctx context.Context, p parting) error {
	h.mu.Lock()
	h.refs--
	last := h.refs == 0
	h.tainted = h.tainted || p.spoiled || last
	h.detached = h.detached || p.detached
	retire, detached, spoiled := h.tainted || h.detached, h.detached, p.spoiled
	h.mu.Unlock()
	if retire {
		h.provider.retire(h)
	}
	switch {
	case !last:
		return nil
	case detached:
		h.letGo()
		return nil
	case spoiled:
		return h.close(ctx)
	}
	h.farewell(ctx)
	return h.close(ctx)
}

// farewell lets an idle process end by itself.
func (h *host) farewell(ctx context.Context) {
	select {
	case <-h.ready:
	default:
		return
	}
	if h.failed != nil || h.process == nil {
		return
	}
	h.out.close()
	wait := time.NewTimer(leaveWait)
	defer wait.Stop()
	select {
	case <-h.process.Done():
	case <-wait.C:
	case <-ctx.Done():
	}
}

// close ends the process and everything it started, and waits for what reads and writes it.
func (h *host) close(ctx context.Context) error {
	h.end()
	ctx, cancel := context.WithTimeout(ctx, h.provider.opts.Grace+stopSlack)
	defer cancel()
	select {
	case <-h.ready: // soon, since life ended
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", h.provider.opts.Agent, context.Cause(ctx))
	}
	if h.process == nil {
		return nil
	}
	err := h.process.Stop(ctx, h.provider.opts.Grace)
	h.out.drop()
	_ = h.process.Stdin().Close() // frees the writer; a second Close has no error worth telling
	return errors.Join(err, h.await(ctx))
}

// await waits for the host's goroutines.
func (h *host) await(ctx context.Context) error {
	served := make(chan struct{})
	go func() { h.serving.Wait(); close(served) }()
	for _, ended := range []chan struct{}{h.pumped, h.out.done, served} {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("close %s: %w", h.provider.opts.Agent, context.Cause(ctx))
		}
	}
	return nil
}

// letGo lets go of the process, which goes on, and waits for the host's goroutines.
func (h *host) letGo() {
	select {
	case <-h.ready:
		if h.process != nil {
			h.out.flush(markWait)
		}
	default: // nothing is to be written
	}
	h.end()
	<-h.ready
	if h.process == nil {
		return
	}
	h.process.Detach()
	h.out.drop()
	ctx, cancel := context.WithTimeout(context.Background(), stopSlack)
	defer cancel()
	if err := h.await(ctx); err != nil {
		h.provider.opts.Logger.Error("an agent was not let go of", "agent", string(h.provider.opts.Agent), "err", err)
	}
}

// alive says whether the process can take another turn.
func (h *host) alive() bool {
	select {
	case <-h.pumped:
		return false
	case <-h.process.Done():
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.tainted && !h.detached
}
