package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"ductor/cli"
)

// entry registers a turn and returns its context.
func entry(t *testing.T, r *Registry, c cli.Conversation, turn cli.TurnID) (context.Context, *Run) {
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, r.Register(c, turn, "claude", cancel)
}

func TestRegistryAbortsATurnAndNotTheChat(t *testing.T) {
	r := NewRegistry(time.Now)
	first, run := entry(t, r, "a", "1")
	other, _ := entry(t, r, "b", "2")
	if !r.HasActive("a") || r.HasActive("c") {
		t.Error("HasActive is wrong")
	}
	if !r.Abort("a") || !errors.Is(context.Cause(first), cli.ErrAborted) {
		t.Errorf("the turn's cause is %v", context.Cause(first))
	}
	if other.Err() != nil {
		t.Error("another conversation was aborted too")
	}
	r.Unregister(run)
	r.Unregister(run)
	if r.HasActive("a") || r.Abort("a") {
		t.Error("something is left of the turn that ended")
	}
	next, _ := entry(t, r, "a", "3")
	if next.Err() != nil {
		t.Error("the next turn of the chat is marked")
	}
}

func TestRegistryAbortsOneTurn(t *testing.T) {
	r := NewRegistry(time.Now)
	one, _ := entry(t, r, "a", "1")
	two, _ := entry(t, r, "a", "2")
	if !r.AbortTurn("2") || r.AbortTurn("9") {
		t.Error("AbortTurn says the wrong thing")
	}
	if one.Err() != nil || !errors.Is(context.Cause(two), cli.ErrAborted) {
		t.Errorf("causes %v and %v", context.Cause(one), context.Cause(two))
	}
}

// The age of a turn for the sweep has no monotonic part, which stands still while the machine is suspended.
func TestRegistryEndsAStaleTurn(t *testing.T) {
	now := time.Now()
	r := NewRegistry(func() time.Time { return now })
	old, _ := entry(t, r, "a", "1")
	young, _ := entry(t, r, "b", "2")
	list := r.List()
	if len(list) != 2 || list[0].Turn != "1" || list[0].Agent != "claude" || list[0].Started != now.Round(0) {
		t.Errorf("list %+v", list)
	}
	if !r.EndStale("1") || r.EndStale("9") {
		t.Error("EndStale says the wrong thing")
	}
	if !errors.Is(context.Cause(old), cli.ErrStale) || young.Err() != nil {
		t.Errorf("causes %v and %v", context.Cause(old), context.Cause(young))
	}
	if got := cli.Cut(old, "claude"); got.Err == nil || got.Err.Kind != cli.TimedOut || got.Aborted {
		t.Errorf("a stale turn becomes %+v", got)
	}
}
