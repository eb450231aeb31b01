package codex

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// server is one `codex app-server` and the threads of all conversations that share it. Safe for concurrent use.
type server struct {
	provider *Provider
	setting  string // what the process was started with, as a digest
	process  cli.Process
	peer     *rpc.Peer
	gone     chan struct{} // closed when the process has ended and failure is set
	failure  *cli.Failure
	version  string // of the program; empty if it was not said. Set before the server is used

	mu       sync.Mutex
	busy     int                           // turns that run, or of which something may be left
	inboxes  map[cli.AgentSessionID]*inbox // of the turns that run, and of those to be resumed
	parents  map[cli.AgentSessionID]cli.AgentSessionID
	limits   *rpc.Message // what was said of rate limits last
	defaults *settings
	letGo    bool
	dying    bool // it is being ended

	// Under provider.mu.
	users int            // sessions, and turns to be resumed that no request has named yet
	left  *cli.LeftRun   // what was attached to
	await []*awaitedTurn // of it
	ready chan struct{}  // closed when the server can be used, or start has failed
	err   error          // of the start
}

// connect makes a server of a process. left is what is known of a process that was attached to.
func (p *Provider) connect(h *server, process cli.Process, from int64, left *cli.LeftRun) {
	h.process = process
	h.inboxes, h.parents = map[cli.AgentSessionID]*inbox{}, map[cli.AgentSessionID]cli.AgentSessionID{}
	h.gone = make(chan struct{})
	o := rpc.Options{Agent: Agent, Handler: h, From: from}
	if left != nil {
		o.Past, o.Until = true, left.OutputEnd
	}
	h.peer = rpc.New(process, o)
}

// Changed tells every turn, and has the process ended whose output is over; see rpc.Handler.
func (h *server) Changed(c rpc.Change) {
	if c.Ended {
		go h.end()
		return
	}
	h.broadcast(news{Change: c})
}

// end sees to it that the process is gone, and says why.
func (h *server) end() {
	defer close(h.gone)
	h.mu.Lock()
	letGo := h.letGo
	h.mu.Unlock()
	if letGo {
		h.failure = &cli.Failure{Kind: cli.UnknownFailure, Agent: Agent, Reason: "ductor detached from it", Cause: cli.ErrDetached}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.provider.opts.Grace+stopWait)
	defer cancel()
	stopErr := h.process.Stop(ctx, h.provider.opts.Grace)
	h.failure = h.peer.Failure()
	h.failure.Cause = errors.Join(h.failure.Cause, stopErr)
	if kindOf(h.process.StderrTail()) == cli.NotLoggedIn {
		h.failure.Kind = cli.NotLoggedIn
	}
}

// stopWait is what the end of a process may take beyond its grace.
const stopWait = 10 * time.Second

// alive says whether the process can take another turn.
func (h *server) alive() bool {
	select {
	case <-h.gone:
		return false
	case <-h.peer.Ended():
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.dying
}

// about is whom a message concerns.
type about struct {
	Thread cli.AgentSessionID `json:"threadId"`
	Turn   string             `json:"turnId"`
}

// Notified deals out a notification.
func (h *server) Notified(m rpc.Message) {
	var a about
	_ = json.Unmarshal(m.Params, &a) // what names no thread concerns no turn or every turn
	switch m.Method {
	case "thread/started":
		h.born(m)
	case "account/rateLimits/updated":
		h.mu.Lock()
		h.limits = &m
		h.mu.Unlock()
		h.broadcast(news{Message: m})
		return
	}
	if b := h.inboxOf(a.Thread, false); b != nil {
		b.put(news{Message: m})
	}
}

// born remembers which thread another one was started by: it asks in the name of that.
func (h *server) born(m rpc.Message) {
	var started struct {
		Thread struct {
			ID     cli.AgentSessionID `json:"id"`
			Parent cli.AgentSessionID `json:"parentThreadId"`
		} `json:"thread"`
	}
	if json.Unmarshal(m.Params, &started) != nil || started.Thread.Parent == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.parents) < maxPending {
		h.parents[started.Thread.ID] = started.Thread.Parent
	}
}

// Requested hands a request to the turn it is of. What no turn waits for is declined.
func (h *server) Requested(m rpc.Message) bool {
	if !askable(m.Method) {
		return false
	}
	var a about
	_ = json.Unmarshal(m.Params, &a) // a request of no thread is declined below
	if b := h.inboxOf(a.Thread, true); b != nil {
		b.put(news{Message: m})
		return true
	}
	h.mu.Lock()
	letGo := h.letGo // then it is for the next process to answer
	h.mu.Unlock()
	if !h.peer.Past() && !letGo { // in the past it was dealt with
		_ = h.peer.Reply(m.ID, declining(m), nil)
	}
	return true
}

// inboxOf finds the turn of a thread; with family, also of the thread that started it.
func (h *server) inboxOf(thread cli.AgentSessionID, family bool) *inbox {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 8 { // generations
		b := h.inboxes[thread]
		parent, known := h.parents[thread]
		if b != nil || !family || !known {
			return b
		}
		thread = parent
	}
	return nil
}

func (h *server) broadcast(n news) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.inboxes {
		b.put(n)
	}
}

// attend has everything of a thread put into b.
func (h *server) attend(thread cli.AgentSessionID, b *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inboxes[thread] = b
}

// ignore undoes attend, unless another turn attends to the thread by now.
func (h *server) ignore(thread cli.AgentSessionID, b *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inboxes[thread] == b {
		delete(h.inboxes, thread)
	}
}

// kill ends the process with everything it started, and returns when it is gone.
func (h *server) kill(ctx context.Context) error {
	h.mu.Lock()
	h.dying = true // a session that comes during it starts another process
	h.mu.Unlock()
	err := h.peer.Stop(ctx, h.provider.opts.Grace)
	select {
	case <-h.gone:
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
	return err
}

// leaving says that the process is about to be detached: it gets no more answers for turns that
// no session listens to.
func (h *server) leaving() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.letGo = true
}

// detach detaches from the process, which goes on.
func (h *server) detach() {
	h.leaving()
	if err := h.peer.Detach(); err != nil {
		h.provider.opts.Logger.Error("detach from an app server", "pid", h.process.PID(), "err", err)
		return
	}
	<-h.gone
}
