package service

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// slowToOpen returns an agent that takes a second to start.
func slowToOpen() *fakeProvider {
	return &fakeProvider{open: func(ctx context.Context, _ *fakeSession) error {
		select {
		case <-time.After(time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// A turn runs in the session that was opened ahead, even if the turn comes before it is open.
func TestATurnRunsInWhatWasOpenedAhead(t *testing.T) {
	for _, later := range []time.Duration{0, 500 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := slowToOpen()
			s := serve(t, p)
			s.Warm("fake", cli.Request{Conversation: "a", Dir: "/x"})
			time.Sleep(later)
			synctest.Wait()
			began := time.Now()
			run(t, s, "fake", cli.Request{Conversation: "a", Dir: "/x"})
			if took, want := time.Since(began), max(time.Second-later, 0); took != want {
				t.Errorf("a turn %s later took %s, want %s", later, took, want)
			}
			if n := len(p.opened()); n != 1 {
				t.Errorf("%d sessions were opened", n)
			}
			closeService(t, s)
		})
	}
}

func TestOpeningAhead(t *testing.T) {
	a := cli.Request{Conversation: "a"}
	for _, tc := range []struct {
		name   string
		opts   Options
		before func(*testing.T, *Service, *fakeProvider)
		after  func(*Service)
		opened int
		want   string // conversations with a session a minute later
	}{
		{name: "nothing else lives", opened: 1, want: "a"},
		{name: "nobody asks", opts: Options{Settings: Settings{IdleLimit: 30 * time.Second}}, opened: 1},
		{name: "it is released meanwhile", opened: 1, after: func(s *Service) { s.Release("a") }},
		{name: "it is wanted otherwise meanwhile", opened: 2, want: "a", after: func(s *Service) {
			s.Warm("fake", cli.Request{Conversation: "a", Dir: "/y"})
		}},
		{name: "no place is free", opts: atMost(1), opened: 1, want: "b",
			before: func(t *testing.T, s *Service, _ *fakeProvider) { run(t, s, "fake", cli.Request{Conversation: "b"}) }},
		{name: "its own session fits", opened: 1, want: "a",
			before: func(t *testing.T, s *Service, p *fakeProvider) {
				run(t, s, "fake", a)
				p.opened()[0].begin.Resume, p.opened()[0].id = "", ""
			}},
		{name: "its own session does not fit and makes way", opts: atMost(1), opened: 2, want: "a",
			before: func(t *testing.T, s *Service, _ *fakeProvider) {
				run(t, s, "fake", cli.Request{Conversation: "a", Dir: "/z"})
			}},
		{name: "a turn of it runs", opened: 1, want: "A",
			before: func(t *testing.T, s *Service, p *fakeProvider) {
				p.turn = obedient
				go s.Run(t.Context(), "fake", a, quietly)
				time.Sleep(2 * time.Second)
			}},
		{name: "it is run one-shot", opts: Options{Modes: map[cli.Agent]cli.Mode{"fake": cli.OneShot}}},
		{name: "ductor ends meanwhile", opened: 1, after: func(s *Service) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = s.Close(ctx) // closed again at the end, where its error counts
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := slowToOpen()
				s := newTestService(t, tc.opts, p)
				if tc.before != nil {
					tc.before(t, s, p)
				}
				s.Warm("fake", a)
				s.Warm("nobody", a)
				synctest.Wait()
				if tc.after != nil {
					tc.after(s)
				}
				time.Sleep(time.Minute)
				if got := living(s); got != tc.want || len(p.opened()) != tc.opened {
					t.Errorf("%q live of %d opened, want %q of %d", got, len(p.opened()), tc.want, tc.opened)
				}
				closeService(t, s)
				if n := len(s.pool.slots) + len(s.pool.queue); n > 0 {
					t.Errorf("%d processes and requests are left at the end", n)
				}
			})
		})
	}
}

// A session that is opened ahead and no longer wanted is gone before another session is opened.
func TestWhatIsNotWantedAheadIsGoneBeforeTheNextOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opening atomic.Int64
		p := &fakeProvider{open: func(context.Context, *fakeSession) error { // it takes a moment to give up
			if opening.Add(1) > 1 {
				t.Error("two sessions of a conversation are opened at once")
			}
			time.Sleep(time.Second)
			opening.Add(-1)
			return nil
		}}
		s := serve(t, p)
		s.Warm("fake", cli.Request{Conversation: "a"})
		synctest.Wait()
		s.Warm("fake", cli.Request{Conversation: "a", Dir: "/x"})
		synctest.Wait()
		s.Release("a")
		run(t, s, "fake", cli.Request{Conversation: "a", Dir: "/y"})
		closeService(t, s)
	})
}

// slowFor delays the first caller of Home.
type slowFor struct {
	asked atomic.Int64
	first chan struct{}
}

func (h *slowFor) Home(_ context.Context, session string) (string, error) {
	if h.asked.Add(1) == 1 {
		<-h.first
	}
	return "/home/" + session, nil
}

// A turn that comes before anything is opened ahead opens its session itself, and no other session is opened beside it.
func TestNothingIsOpenedAheadBesideATurnThatOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := slowToOpen()
		homes := &slowFor{first: make(chan struct{})}
		s := newTestService(t, Options{Homes: homes}, p)
		s.Warm("fake", cli.Request{Conversation: "a", Session: "s"})
		synctest.Wait()
		over := begin(t, s, cli.Request{Conversation: "a", Session: "s", Turn: "t"}, quietly)
		close(homes.first)
		if r := <-over; r.Err != nil {
			t.Error(r.Err)
		}
		time.Sleep(time.Minute)
		if n := len(p.opened()); n != 1 {
			t.Errorf("%d sessions were opened", n)
		}
		closeService(t, s)
	})
}
