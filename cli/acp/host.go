package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
		h.failed = h.provider.startFailure(err)
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

// talk begins to read and write.
func (h *host) talk(process cli.Process, from, until int64) {
	h.process, h.out = process, newWriter(process.Stdin())
	h.past, h.handled = until >= 0, from
	go h.pump(from, until)
}

func (h *host) pump(from, until int64) {
	defer close(h.pumped)
	err := readLines(h.process.Stdout(), from, until, h.deal)
	h.mu.Lock()
	h.readErr, h.tainted = err, true
	sessions := h.members()
	h.mu.Unlock()
	h.provider.retire(h)
	h.out.drop()
	for _, s := range sessions {
		s.inbox.put(item{ended: true})
	}
}

// members is called with mu held.
func (h *host) members() []*session {
	list := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		list = append(list, s)
	}
	return list
}

// deal hands on one line.
func (h *host) deal(ev lineEvent) {
	switch {
	case ev.lost != nil, ev.caughtUp:
		h.tellAll(item{at: ev.end, lost: ev.lost, caughtUp: ev.caughtUp})
	case ev.oversized:
		h.unreadable(ev)
	case len(strings.TrimSpace(string(ev.line[:min(len(ev.line), 1)]))) == 0 && len(strings.TrimSpace(string(ev.line))) == 0:
	default:
		var m message
		if err := json.Unmarshal(ev.line, &m); err != nil {
			h.unreadable(ev)
			break
		}
		h.take(&m, ev.end)
	}
	h.mu.Lock()
	h.handled = ev.end
	h.past = h.past && !ev.caughtUp
	h.mu.Unlock()
}

func (h *host) unreadable(ev lineEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.garbages++
	if h.garbage == nil {
		h.garbage = append([]byte{}, ev.line[:min(len(ev.line), oversizeHead)]...)
	}
}

func (h *host) tellAll(i item) {
	h.mu.Lock()
	sessions := h.members()
	h.mu.Unlock()
	for _, s := range sessions {
		s.deliver(i)
	}
}

// take sorts a message by what it is.
func (h *host) take(m *message, at int64) {
	switch {
	case m.Method == "":
		h.answered(m, at)
	case m.Method == methodUpdate:
		var p updateParams
		if json.Unmarshal(m.Params, &p) == nil {
			h.deliver(p.SessionID, item{at: at, update: p.Update})
		}
	case m.Method == methodCancelRequest:
		var p cancelRequestParams
		if json.Unmarshal(m.Params, &p) == nil {
			h.tellAll(item{at: at, withdrawn: string(p.RequestID)})
		}
	case len(m.ID) == 0: // a notification that is not known
	case m.Method == methodAsk:
		h.asked(m, at)
	default:
		h.asksUs(m)
	}
}

// answered takes a response. One that nobody waits for is dropped: it came twice, too late, or was meant for an
// earlier ductor.
func (h *host) answered(m *message, at int64) {
	id := idOf(m.ID)
	h.mu.Lock()
	waits, session := h.calls[id], h.prompts[id]
	delete(h.calls, id)
	delete(h.prompts, id)
	h.mu.Unlock()
	switch {
	case waits != nil:
		waits <- m // has room: each id is answered once
	case session != nil:
		session.deliver(item{at: at, reply: m})
	}
}

// idOf is an id as it was made, whether the agent gives it back as a string or not.
func idOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (h *host) deliver(session string, i item) {
	h.mu.Lock()
	s := h.sessions[session]
	h.mu.Unlock()
	if s != nil {
		s.deliver(i)
	}
}

// asked takes a request for permission.
func (h *host) asked(m *message, at int64) {
	var p askParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		h.refuse(m.ID, codeBadParams, "the request cannot be read")
		return
	}
	h.mu.Lock()
	s, gone := h.sessions[p.SessionID], h.detached
	h.mu.Unlock()
	if gone { // it is for the next ductor
		return
	}
	if s == nil || !s.deliver(item{at: at, ask: &ask{id: m.ID, params: p}}) {
		h.respond(m.ID, cancelled())
	}
}

// call sends a request and waits for its answer, at most as long as Options say. Errors are *rpcError where the
// agent gave one.
func (h *host) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, h.provider.opts.CallLimit)
	defer cancel()
	answer := make(chan *message, 1)
	h.mu.Lock()
	h.next++
	id := h.ids + "-" + strconv.Itoa(h.next)
	h.calls[id] = answer
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, id)
	}()
	if err := h.send(request{ID: id, Method: method, Params: params}); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return read(method, m, result)
	case <-h.pumped:
		return h.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to %s: %w", method, context.Cause(ctx))
	}
}

func read(method string, m *message, result any) error {
	if m.Error != nil {
		return m.Error
	}
	if result == nil || len(m.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, err)
	}
	return nil
}

func (h *host) send(r request) error {
	r.JSONRPC = "2.0"
	line, err := encode(r)
	if err != nil {
		return err
	}
	return h.out.send(parcel{line: line})
}

func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return append(line, '\n'), nil
}

// respond answers a request of the agent's.
func (h *host) respond(id json.RawMessage, result any) {
	h.reply(response{ID: id, Result: result}, nil)
}

func (h *host) refuse(id json.RawMessage, code int, text string) {
	h.reply(response{ID: id, Error: &rpcError{Code: code, Message: text}}, nil)
}

// reply sends a response; sent is told when it is written, or that it was not.
func (h *host) reply(r response, sent func(error)) {
	r.JSONRPC = "2.0"
	line, err := encode(r)
	if err == nil {
		err = h.out.send(parcel{line: line, sent: sent})
	}
	if err != nil && sent != nil {
		sent(err)
	}
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
