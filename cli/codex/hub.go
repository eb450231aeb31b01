package codex

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// hub is one `codex app-server` and the threads of all conversations that share it. Safe for concurrent use.
type hub struct {
	provider *Provider
	setting  string // what the process was started with, as a digest
	process  cli.Process
	stream   *cli.Stream // reads
	out      *outlet     // writes
	conn     *conn
	feed     *feed
	gone     chan struct{} // closed when the process has ended and failure is set
	failure  *cli.Failure
	version  string // of the program; empty if it was not said. Set before the hub is used

	mu       sync.Mutex
	busy     int                           // turns that run, or of which something may be left
	inboxes  map[cli.AgentSessionID]*inbox // of the turns that run, and of those to be gone on with
	parents  map[cli.AgentSessionID]cli.AgentSessionID
	limits   *message // what was said of rate limits last
	defaults *settings
	letGo    bool
	dying    bool // it is being ended

	// Under provider.mu.
	users int            // sessions, and turns to be gone on with that nobody asked for yet
	left  *cli.LeftRun   // what was attached to
	await []*awaitedTurn // of it
	ready chan struct{}  // closed when the hub can be used, or start has failed
	err   error          // of the start
}

// connect makes a hub of a process. left is what is known of a process that was attached to.
func (p *Provider) connect(h *hub, process cli.Process, from int64, left *cli.LeftRun) {
	h.process = process
	h.inboxes, h.parents = map[cli.AgentSessionID]*inbox{}, map[cli.AgentSessionID]cli.AgentSessionID{}
	h.gone = make(chan struct{})
	h.feed = &feed{r: process.Stdout(), reached: func() { h.broadcast(news{caughtUp: true}) }}
	h.feed.lost = func(l *cli.LostOutput) { h.broadcast(news{lost: l}) }
	h.feed.at.Store(from)
	prefix := "ductor"
	if left != nil {
		h.feed.past, h.feed.until = true, left.OutputEnd
		prefix += "-" + itoa(left.InputEnd) // nothing was asked yet by whoever would be called the same
	}
	h.out = newOutlet(process)
	h.conn = newConn(prefix, h.out.send, h.told, h.asked)
}

// listen begins to read.
func (h *hub) listen() {
	options := h.provider.opts.StreamOptions(Agent)
	ready := make(chan struct{})
	options.Idle = func(line []byte) {
		<-ready
		if !h.conn.take(line) {
			h.stream.Garbage(line)
		}
	}
	h.stream = cli.NewStream(watchedProcess{h.process, h.feed}, options)
	close(ready)
	go h.watch()
}

// watch sees to it that a process whose output ended is gone, and tells everybody.
func (h *hub) watch() {
	<-h.stream.Ended()
	h.mu.Lock()
	letGo := h.letGo
	h.mu.Unlock()
	if letGo {
		h.failure = &cli.Failure{Kind: cli.UnknownFailure, Agent: Agent, Reason: "ductor let go of it", Cause: cli.ErrDetached}
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), h.provider.opts.Grace+stopWait)
		stopErr := h.process.Stop(ctx, h.provider.opts.Grace)
		cancel()
		h.failure = h.stream.Failure()
		h.failure.Cause = errors.Join(h.failure.Cause, stopErr)
		if kindOf(h.process.StderrTail()) == cli.NotLoggedIn {
			h.failure.Kind = cli.NotLoggedIn
		}
	}
	close(h.gone)
	h.out.close(h.failure)
	h.conn.end(h.failure)
}

// restWait is how long it may take to record that a process rests, when it is let go of.
const restWait = markWait

// stopWait is what the end of a process may take beyond its grace.
const stopWait = 10 * time.Second

// alive says whether the process can take another turn.
func (h *hub) alive() bool {
	select {
	case <-h.gone:
		return false
	case <-h.stream.Ended():
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

// told deals out a notification. It is called between two lines, by the reader.
func (h *hub) told(m message) {
	var a about
	_ = json.Unmarshal(m.Params, &a) // what names no thread concerns nobody, or everybody
	switch m.Method {
	case "thread/started":
		h.born(m)
	case "account/rateLimits/updated":
		h.mu.Lock()
		h.limits = &m
		h.mu.Unlock()
		h.broadcast(news{message: m})
		return
	}
	if b := h.inboxOf(a.Thread, false); b != nil {
		b.put(news{message: m})
	}
}

// born remembers which thread another one was started by: it asks in the name of that.
func (h *hub) born(m message) {
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

// asked hands a request to the turn it is of. What no turn waits for is declined.
func (h *hub) asked(m message) bool {
	if !askable(m.Method) {
		return false
	}
	var a about
	_ = json.Unmarshal(m.Params, &a) // a request of nobody is declined below
	if b := h.inboxOf(a.Thread, true); b != nil {
		b.put(news{message: m})
		return true
	}
	h.mu.Lock()
	letGo := h.letGo // then it is the next ductor's to answer
	h.mu.Unlock()
	if !h.feed.past && !letGo { // in the past it was dealt with
		_ = h.conn.reply(m.ID, declining(m))
	}
	return true
}

// inboxOf finds the turn of a thread; with family, also of the thread that started it.
func (h *hub) inboxOf(thread cli.AgentSessionID, family bool) *inbox {
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

func (h *hub) broadcast(n news) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.inboxes {
		b.put(n)
	}
}

// attend has everything of a thread put into b.
func (h *hub) attend(thread cli.AgentSessionID, b *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inboxes[thread] = b
}

// ignore undoes attend, unless another turn attends to the thread by now.
func (h *hub) ignore(thread cli.AgentSessionID, b *inbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inboxes[thread] == b {
		delete(h.inboxes, thread)
	}
}

// kill ends the process with everything it started, and returns when it is gone.
func (h *hub) kill(ctx context.Context) error {
	h.mu.Lock()
	h.dying = true // who comes meanwhile has another one started
	h.mu.Unlock()
	err := h.stream.Close(ctx)
	h.out.close(errHubClosed)
	select {
	case <-h.gone:
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
	select {
	case <-h.out.done:
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
	return err
}

var errHubClosed = errors.New("codex was ended")

// leaving says that the process is about to be let go of: nothing is answered any more in the name of turns that
// nobody listens to.
func (h *hub) leaving() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.letGo = true
}

// detach lets go of the process, which goes on.
func (h *hub) detach() {
	h.leaving()
	h.out.close(cli.ErrDetached)
	last := time.NewTimer(restWait)
	select {
	case <-h.out.done:
	case <-last.C: // it does not read
	}
	last.Stop()
	h.stream.Detach()
	<-h.gone
	<-h.out.done
}
