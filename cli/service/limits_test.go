package service

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// askingOnce is a turn that asks its user, and ends when goOn is closed.
func askingOnce(goOn <-chan struct{}) func(context.Context, *fakeSession, cli.Request, *turn.Emitter) {
	return func(ctx context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
		em.Session(s.id, "m")
		em.Pass(cli.ApprovalAsked{ID: "1", Tool: "Bash", Title: "make"})
		select {
		case <-goOn:
			em.Finish(cli.Result{})
		case <-ctx.Done():
			em.Finish(cli.Cut(ctx, s.p.Agent()))
		}
	}
}

// Agents that wait for their users do not prevent other conversations from starting, and are not ended to make room.
func TestAgentsThatWaitForTheirUsersDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		p := &fakeProvider{turn: askingOnce(goOn)}
		s := newTestService(t, atMost(2), p)
		waiting := []chan cli.Result{ask(t, s, "a", quietly), ask(t, s, "b", quietly)}
		p.turn = lasting
		c, d, e := ask(t, s, "c", quietly), ask(t, s, "d", quietly), ask(t, s, "e", quietly)
		if got := living(s); got != "ABCD" {
			t.Errorf("%q live, want the two that wait for their users and two that work", got)
		}
		for _, over := range []chan cli.Result{c, d, e} {
			if r := <-over; r.Err != nil {
				t.Error(r.Err)
			}
		}
		close(goOn)
		for _, over := range waiting {
			if r := <-over; r.Err != nil || r.Aborted {
				t.Errorf("a turn that waited for its user ended as %+v", r)
			}
		}
		closeService(t, s)
	})
}

// A process is started if there is enough memory. Otherwise idle processes are ended, and the turn shows that it waits.
func TestProcessesStartAsMemoryAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Int64
		available.Store(2*unmeasured + 10)
		s := newTestService(t, Options{Available: available.Load}, &fakeProvider{turn: lasting})
		var said []string
		listen := func(ev cli.Event) {
			if status, ok := ev.(cli.Status); ok && status.Kind == cli.StatusWaiting {
				said = append(said, status.Detail)
			}
		}
		a, b := ask(t, s, "a", quietly), ask(t, s, "b", quietly)
		c := ask(t, s, "c", listen)
		if got := living(s); got != "AB" || len(said) != 1 || said[0] != "memory is low; this is next" {
			t.Errorf("%q live, the third was told %q", got, said)
		}
		available.Store(3*unmeasured + 10) // another program released memory
		time.Sleep(2 * lookAgain)
		if got := living(s); got != "ABC" {
			t.Errorf("%q live when there is memory", got)
		}
		for _, over := range []chan cli.Result{a, b, c} {
			if r := <-over; r.Err != nil {
				t.Error(r.Err)
			}
		}
		available.Store(0)
		if r := <-ask(t, s, "d", quietly); r.Err != nil { // all idle ones make way, and one may always live
			t.Error(r.Err)
		}
		if got := living(s); got != "d" {
			t.Errorf("%q live without memory", got)
		}
		closeService(t, s)
	})
}
