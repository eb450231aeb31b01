package codex

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// server is a `codex app-server` process with the threads of all conversations that share it. Safe for concurrent use.
type server struct {
	*shared.Process
	shared.Members[*shared.Session[news]] // by thread ID
	provider                              *Provider

	mu        sync.Mutex
	parents   map[cli.AgentSessionID]cli.AgentSessionID
	starting  map[mcpServer]string // MCP servers that are not ready, with their problems; "" while starting
	defaults  *settings
	sentTerms map[cli.AgentSessionID]sentTerms

	limitsRead time.Time // when readLimits last sent a request
}

// news is a message for a turn. An empty message makes the turn check whether it is over.
type news struct {
	method string
	notice *notice
	ask    *inquiry // a request of Codex that ductor must answer; nil for other messages
	denied *inquiry // a denied request, which the turn must record
	reason string
}

func (p *Provider) newServer(process *shared.Process) *server {
	return &server{
		Process: process, provider: p,
		parents: map[cli.AgentSessionID]cli.AgentSessionID{}, starting: map[mcpServer]string{}, sentTerms: map[cli.AgentSessionID]sentTerms{},
	}
}

const (
	helloWait = time.Minute      // maximum time for the first response of an app server
	stopWait  = 10 * time.Second // time for stopping a process, in addition to the grace period
)

// Greet implements shared.Server. It performs the handshake.
func (h *server) Greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	hello := map[string]any{
		"clientInfo":   map[string]string{"name": "ductor", "title": "ductor", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true},
	}
	err := h.Peer().Call(ctx, "initialize", hello, nil)
	if err == nil {
		err = h.Peer().Notify("initialized", nil)
	}
	if err != nil {
		return h.broken(err)
	}
	return nil
}

// exit returns the failure for a turn during which the process ended.
func (h *server) exit() *cli.Failure {
	f := h.Failure()
	if kindOf(h.Program().StderrTail()) == cli.NotLoggedIn {
		f.Kind = cli.NotLoggedIn
	}
	return f
}

// broken converts the error of a call to a failure. If the process has ended, the failure explains why it ended.
func (h *server) broken(err error) *cli.Failure {
	gone := errors.Is(err, rpc.ErrEnded)
	select {
	case <-h.Gone():
		gone = true
	default:
	}
	if gone {
		return h.exit()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &cli.Failure{Kind: cli.BadOutput, Agent: Agent, Reason: "its app server does not answer", Cause: err}
	}
	var refused *rpc.Error
	if errors.As(err, &refused) {
		kind := kindOf(refused.Message)
		if kind == cli.UnknownFailure && (refused.Code == rpc.CodeNoMethod || refused.Code == rpc.CodeInvalidRequest) {
			kind = cli.BadOutput // Codex lacks the method; after BadOutput, ductor tries one-shot mode
		}
		return &cli.Failure{Kind: kind, Agent: Agent, Reason: reasonOf(refused.Message), Detail: cli.Shorten(refused.Message, 2000), Cause: err}
	}
	return cli.AsFailure(Agent, err)
}

// Notified implements rpc.Handler.
func (h *server) Notified(m rpc.Message) {
	var n notice
	if json.Unmarshal(m.Params, &n) != nil {
		return
	}
	if n.Item != nil {
		for _, helper := range n.Item.Receivers {
			h.recordParent(threadInfo{ID: helper, Parent: n.ThreadID})
		}
	}
	to := h.All() // a notification without a thread goes to every turn
	switch {
	case m.Method == "thread/started":
		h.recordParent(n.Thread)
		return
	case m.Method == "mcpServer/startupStatus/updated":
		h.serverStarts(n.ThreadID, m.Params)
		return
	case m.Method == limitsUpdated:
		if n.RateLimits.Primary != nil {
			h.readLimits()
		}
	default:
		s, ok := h.Of(n.ThreadID)
		if n.helper = !ok && n.Item != nil; n.helper {
			s = h.sessionFor(n.ThreadID)
		}
		if s == nil {
			return
		}
		to = []*shared.Session[news]{s}
	}
	for _, s := range to {
		s.Deliver(shared.Item[news]{End: m.End, Message: news{method: m.Method, notice: &n}}, len(m.Params))
	}
}

// maxParents is the maximum number of threads whose parents are recorded.
const maxParents = 1 << 10

// recordParent records the parent of a sub-agent's thread. Requests of this thread belong to the turn of the parent.
func (h *server) recordParent(t threadInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Parent != "" && len(h.parents) < maxParents {
		h.parents[t.ID] = t.Parent
	}
}

type mcpServer struct {
	thread cli.AgentSessionID
	name   string
}

// serverPatience is the time after which a turn warns about an MCP server that is still starting. Codex itself waits
// for 30 seconds.
const serverPatience = 5 * time.Second

// serversLate is a method that ductor itself invented. A message with this method makes a turn warn the user about
// missing MCP servers.
const serversLate = "ductor/serversLate"

// serverStarts records how the start of a thread's MCP server proceeds. Codex does not wait for the server.
func (h *server) serverStarts(thread cli.AgentSessionID, params json.RawMessage) {
	var s struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	if json.Unmarshal(params, &s) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	of := mcpServer{thread, s.Name}
	switch _, starts := h.starting[of]; {
	case s.Status == "starting":
		h.starting[of] = ""
		time.AfterFunc(serverPatience, func() { h.serverLate(of) })
	case s.Status != "failed":
		delete(h.starting, of)
	case starts: // the server was still starting when it failed
		h.starting[of] = "could not be started"
		h.tellServers(thread)
	}
}

func (h *server) serverLate(of mcpServer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if what, starts := h.starting[of]; starts && what == "" {
		h.starting[of] = "does not answer, so its tools are missing"
		h.tellServers(of.thread)
	}
}

// tellServers makes the running turn of a thread warn users about MCP servers that do not work.
func (h *server) tellServers(thread cli.AgentSessionID) {
	if s, ok := h.Of(thread); ok {
		s.Deliver(shared.Item[news]{Message: news{method: serversLate, notice: &notice{ThreadID: thread}}}, 0)
	}
}

// missingServers returns the MCP servers of a thread that do not work, with their problems. It returns each server only
// once.
func (h *server) missingServers(thread cli.AgentSessionID) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for of, what := range h.starting {
		if of.thread == thread && what != "" {
			all = append(all, cli.ShortLine("MCP server "+of.name+" "+what))
			delete(h.starting, of)
		}
	}
	slices.Sort(all)
	return all
}

// Requested implements rpc.Handler. It passes a request to its turn. If there is no such turn, it declines the request.
func (h *server) Requested(m rpc.Message) bool {
	if !askable(m.Method) {
		return false
	}
	a := newInquiry(m)
	s := h.sessionFor(a.params.Thread)
	switch {
	case s != nil && s.Deliver(shared.Item[news]{End: m.End, Message: news{ask: a}}, len(m.Params)):
	case h.Peer().Past(): // the previous process of ductor has handled the request
	case h.State() == shared.Detached: // the next process of ductor will answer
	default:
		h.decline(a)
	}
	return true
}

// decline denies a request that no user can answer. It ignores errors: they occur only after the program has exited.
func (h *server) decline(a *inquiry) {
	_ = h.Peer().Reply(a.m.ID, a.answer(cli.Decision{Reason: "No user can be asked now. Decide yourself."}), nil)
}

// sessionFor returns the session that handles the requests of a thread, or nil if there is none. For the thread of a
// sub-agent, this is the session of the closest known ancestor.
func (h *server) sessionFor(thread cli.AgentSessionID) *shared.Session[news] {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 8 { // maximum depth of sub-agents
		if s, ok := h.Of(thread); ok {
			return s
		}
		parent, known := h.parents[thread]
		if !known {
			break
		}
		thread = parent
	}
	return nil
}

// adoptLive returns a session for a turn of an app server that was running when ductor was restarted.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	return live{kept.(*shared.Session[news])}, nil
}

// Await implements shared.Server. The pool calls it for the marks in order. If a thread has two marks, the second call
// replaces the session of the first, because only the later turn can still be running.
func (h *server) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	var n note
	if json.Unmarshal([]byte(m.Note), &n) != nil || n.Thread == "" {
		return nil, nil
	}
	s := &thread{server: h, bound: n.binding, marker: n.Marker, id: n.Thread, model: n.Model}
	s.live = shared.Adopt(&h.provider.live, s, m, left.Reached(m))
	h.Set(n.Thread, s.live)
	return s.live, func() { h.Remove(n.Thread, s.live) }
}
