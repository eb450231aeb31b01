package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// entry registers a turn and returns its context.
func entry(t *testing.T, r *Registry, c Conversation, turn TurnID) (context.Context, *Run) {
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
	if !r.Abort("a") || !errors.Is(context.Cause(first), ErrAborted) {
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
	if one.Err() != nil || !errors.Is(context.Cause(two), ErrAborted) {
		t.Errorf("causes %v and %v", context.Cause(one), context.Cause(two))
	}
}

// Suspend: the wall clock went on, the monotonic one stood still.
func TestRegistryCountsSuspend(t *testing.T) {
	now := time.Now()
	r := NewRegistry(func() time.Time { return now })
	old, _ := entry(t, r, "a", "1")
	monotonic := now
	now = monotonic.Round(0).Add(3 * time.Hour) // no monotonic part to be misled by
	young, _ := entry(t, r, "b", "2")
	if list := r.List(); len(list) != 2 || list[0].Turn != "1" || list[0].Agent != "claude" {
		t.Errorf("list %+v", list)
	}
	killed := r.KillStale(2 * time.Hour)
	if len(killed) != 1 || killed[0].Turn != "1" || killed[0].Conversation != "a" {
		t.Errorf("killed %+v", killed)
	}
	if !errors.Is(context.Cause(old), ErrStale) || young.Err() != nil {
		t.Errorf("causes %v and %v", context.Cause(old), context.Cause(young))
	}
	if got := Cut(old, "claude"); got.Err == nil || got.Err.Kind != TimedOut || got.Aborted {
		t.Errorf("a stale turn becomes %+v", got)
	}
}

func TestRegistrySweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(time.Now)
		run, _ := entry(t, r, "a", "1")
		ctx, stop := context.WithCancel(t.Context())
		killed := make(chan RunInfo, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Sweep(ctx, time.Minute, 10*time.Minute, func(i RunInfo) { killed <- i })
		}()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if run.Err() != nil {
			t.Error("killed before its time")
		}
		time.Sleep(time.Minute)
		if info := <-killed; info.Turn != "1" || !errors.Is(context.Cause(run), ErrStale) {
			t.Errorf("killed %+v with cause %v", info, context.Cause(run))
		}
		stop()
		<-done
	})
}
