package service

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/turn"
)

// For any sequence of turns, aborts, releases and sessions that are opened ahead, there are never more processes than
// the limit, every turn ends, and at the end every place is free.
func TestThePoolKeepsItsCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(rt, "cap")
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) poolStep {
			return poolStep{
				what: rapid.SampledFrom([]string{"ask", "ask", "ask", "abort", "release", "warm", "die"}).Draw(rt, "what"),
				who:  cli.Conversation(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "who")),
				rest: time.Duration(rapid.IntRange(0, 1500).Draw(rt, "rest")) * time.Millisecond,
			}
		}), 1, 30).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) { playSteps(t, limit, steps) })
	})
}

type poolStep struct {
	what string
	who  cli.Conversation
	rest time.Duration
}

func playSteps(t *testing.T, limit int, steps []poolStep) {
	place := newFakePlace()
	p := &fakeProvider{open: func(ctx context.Context, s *fakeSession) error {
		time.Sleep(300 * time.Millisecond)
		if err := ctx.Err(); err != nil {
			return err
		}
		s.closeTime = 200 * time.Millisecond
		return place.open(ctx, s)
	}}
	p.turn = func(ctx context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
		em.Session(s.id, "m")
		select {
		case <-time.After(time.Second):
			em.Finish(cli.Result{Text: "done"})
		case <-ctx.Done():
			em.Finish(cli.Cut(ctx, "fake"))
		}
	}
	s := newTestService(t, Options{
		Settings: Settings{MaxLive: limit, IdleLimit: 5 * time.Second}, Launchers: []cli.Launcher{place},
	}, p)
	var turns sync.WaitGroup
	for i, step := range steps {
		switch step.what {
		case "ask":
			if s.registry.HasActive(step.who) {
				break
			}
			turns.Go(func() {
				s.Run(t.Context(), "fake", cli.Request{Conversation: step.who, Turn: cli.TurnID(fmt.Sprint(i))}, quietly)
			})
		case "abort":
			s.Abort(step.who)
		case "release":
			s.Release(step.who)
		case "warm":
			s.Warm("fake", cli.Request{Conversation: step.who})
		case "die":
			if idle := s.pool.idleSession(step.who); idle != nil {
				idle.process.die()
			}
		}
		synctest.Wait()
		if alive := place.alive(); alive > limit {
			t.Fatalf("%d processes live after step %d, and %d may", alive, i, limit)
		}
		time.Sleep(step.rest)
	}
	turns.Wait()
	closeService(t, s)
	if n := len(s.pool.slots) + len(s.pool.queue); n > 0 || place.alive() > 0 {
		t.Errorf("%d processes and requests are left at the end, %d processes live", n, place.alive())
	}
}

func (l *fakePlace) alive() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.processes {
		select {
		case <-p.Done():
		default:
			n++
		}
	}
	return n
}
