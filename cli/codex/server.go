package codex

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// server is one `codex app-server` and the threads of all conversations that share it. Safe for concurrent use.
type server struct {
	*shared.Process
	provider *Provider
	turns    shared.Members[*inbox]      // that run, and those to be resumed
	awaited  map[cli.TurnID]*awaitedTurn // those to be resumed

	mu       sync.Mutex
	parents  map[cli.AgentSessionID]cli.AgentSessionID
	defaults *settings
}

// inbox has what one turn gets to know.
type inbox = turn.Queue[news]

// news is what a turn gets to know: a message, or what happened to the connection.
type news struct {
	rpc.Message
	turn.Change
	denied *inquiry // a person said no, for this reason
	reason string
}

func put(b *inbox, m rpc.Message) { b.Put(news{Message: m}, len(m.Params)+len(m.Result)) }

func (p *Provider) newServer(process *shared.Process) *server {
	return &server{
		Process: process, provider: p,
		awaited: map[cli.TurnID]*awaitedTurn{}, parents: map[cli.AgentSessionID]cli.AgentSessionID{},
	}
}

const (
	helloWait = time.Minute      // from an app server's start to its first answer, on a small box that is busy
	stopWait  = 10 * time.Second // what the end of a process may take beyond its grace
)

// Greet shakes hands; see shared.Server.
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

// exit says what the end of the process in the middle of a turn means.
func (h *server) exit() *cli.Failure {
	f := h.Failure()
	if kindOf(h.Program().StderrTail()) == cli.NotLoggedIn {
		f.Kind = cli.NotLoggedIn
	}
	return f
}

// broken is the Failure for a call that failed: that of the process if it is gone.
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
			kind = cli.BadOutput // a version that does not know what ductor asks: one-shot may do
		}
		return &cli.Failure{Kind: kind, Agent: Agent, Reason: reasonOf(refused.Message), Detail: cli.Shorten(refused.Message, 2000), Cause: err}
	}
	return cli.AsFailure(Agent, err)
}

// Changed tells every turn; see rpc.Handler.
func (h *server) Changed(c turn.Change) {
	for _, b := range h.turns.All() {
		b.Put(news{Change: c}, 0)
	}
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
		for _, b := range h.turns.All() {
			put(b, m)
		}
		return
	}
	if b, ok := h.turns.Of(a.Thread); ok {
		put(b, m)
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
	switch b := h.asking(a.Thread); {
	case b != nil:
		put(b, m)
	case h.Peer().Past(): // it was dealt with
	case h.State() == shared.Detached: // the next process answers it
	default:
		_ = h.Peer().Reply(m.ID, declining(m), nil)
	}
	return true
}

// asking finds the turn that a thread asks in: its own, or that of the thread that started it.
func (h *server) asking(thread cli.AgentSessionID) *inbox {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 8 { // generations
		if b, ok := h.turns.Of(thread); ok {
			return b
		}
		parent, known := h.parents[thread]
		if !known {
			break
		}
		thread = parent
	}
	return nil
}
