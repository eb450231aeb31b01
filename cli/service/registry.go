package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// Run is a running turn in the Registry.
type Run struct {
	info   cli.RunInfo
	cancel context.CancelCauseFunc
}

// Registry contains every running turn and can end turns. Ending a turn does not affect the next turn of its
// conversation. Safe for concurrent use.
type Registry struct {
	now func() time.Time

	mu   sync.Mutex
	runs []*Run // running turns in the order of their registration
}

// NewRegistry returns an empty Registry. now returns wall-clock time.
func NewRegistry(now func() time.Time) *Registry { return &Registry{now: now} }

// Register adds a turn. cancel ends the turn with a cause. The caller must call Unregister at the end of the turn.
func (r *Registry) Register(conversation cli.Conversation, turn cli.TurnID, agent cli.Agent,
	cancel context.CancelCauseFunc) *Run {
	run := &Run{cancel: cancel, info: cli.RunInfo{Conversation: conversation, Turn: turn, Agent: agent,
		Started: r.wall()}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, run)
	return run
}

// wall returns the time without its monotonic reading, because the monotonic clock stops while the machine sleeps.
func (r *Registry) wall() time.Time { return r.now().Round(0) }

// Unregister removes run. Idempotent.
func (r *Registry) Unregister(run *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = slices.DeleteFunc(r.runs, func(other *Run) bool { return other == run })
}

// HasActive reports whether a turn of the conversation is running.
func (r *Registry) HasActive(conversation cli.Conversation) bool {
	return len(r.find(func(i cli.RunInfo) bool { return i.Conversation == conversation })) > 0
}

// Abort ends the running turns of a conversation with the cause ErrAborted. It does not wait for their end. It returns
// false if no turn was running.
func (r *Registry) Abort(conversation cli.Conversation) bool {
	return len(r.end(cli.ErrAborted, func(i cli.RunInfo) bool { return i.Conversation == conversation })) > 0
}

// AbortTurn ends one turn with the cause ErrAborted. It does not wait for its end. It returns false if the turn is not
// running.
func (r *Registry) AbortTurn(turn cli.TurnID) bool {
	return len(r.end(cli.ErrAborted, func(i cli.RunInfo) bool { return i.Turn == turn })) > 0
}

// EndStale is like AbortTurn, with the cause ErrStale.
func (r *Registry) EndStale(turn cli.TurnID) bool {
	return len(r.end(cli.ErrStale, func(i cli.RunInfo) bool { return i.Turn == turn })) > 0
}

// List returns every running turn, the oldest first.
func (r *Registry) List() []cli.RunInfo {
	var list []cli.RunInfo
	for _, run := range r.find(func(cli.RunInfo) bool { return true }) {
		list = append(list, run.info)
	}
	return list
}

func (r *Registry) endAll(cause error) { r.end(cause, func(cli.RunInfo) bool { return true }) }

func (r *Registry) end(cause error, which func(cli.RunInfo) bool) []*Run {
	found := r.find(which)
	for _, run := range found {
		run.cancel(cause)
	}
	return found
}

func (r *Registry) find(which func(cli.RunInfo) bool) []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*Run
	for _, run := range r.runs {
		if which(run.info) {
			found = append(found, run)
		}
	}
	return found
}
