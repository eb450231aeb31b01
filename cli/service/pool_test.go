package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// lasting is a turn that takes a minute.
func lasting(ctx context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
	em.Session(s.id, "m")
	select {
	case <-time.After(time.Minute):
		em.Finish(cli.Result{})
	case <-ctx.Done():
		em.Finish(cli.Cut(ctx, s.p.Agent()))
	}
}

// living returns the names of conversations with a session; capitals have a running turn.
func living(s *Service) (names string) {
	synctest.Wait()
	for _, st := range s.pool.status() {
		name := string(st.Conversation)
		if st.Busy {
			name = strings.ToUpper(name)
		}
		names += name
	}
	return names
}

// ask starts a turn; the channel receives its result.
func ask(t *testing.T, s *Service, c cli.Conversation, emit func(cli.Event)) chan cli.Result {
	t.Helper()
	return begin(t, s, cli.Request{Conversation: c, Turn: cli.TurnID(c)}, emit)
}

func begin(t *testing.T, s *Service, req cli.Request, emit func(cli.Event)) chan cli.Result {
	t.Helper()
	over := make(chan cli.Result, 1)
	go func() { over <- s.Run(t.Context(), "fake", req, emit) }()
	synctest.Wait()
	return over
}

func quietly(cli.Event) {}

// If all processes are busy, a turn waits, shows that, and is served in order.
func TestTurnsWaitForAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestService(t, atMost(2), &fakeProvider{turn: lasting})
		var mu sync.Mutex
		told := map[string][]string{}
		tell := func(c string) func(cli.Event) {
			return func(ev cli.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch ev := ev.(type) {
				case cli.Status:
					told[c] = append(told[c], string(ev.Kind)+" "+ev.Detail)
				case cli.SessionStarted:
					told[c] = append(told[c], "starts")
				}
			}
		}
		var turns []chan cli.Result
		for _, c := range []string{"a", "b", "c", "d"} {
			turns = append(turns, ask(t, s, cli.Conversation(c), tell(c)))
			time.Sleep(time.Second)
		}
		if got := living(s); got != "AB" {
			t.Errorf("%q live", got)
		}
		if l := s.Live(t.Context()); l.Waiting != 2 || l.Processes != 2 || l.MaxProcesses != 2 {
			t.Errorf("%+v", l)
		}
		for i, over := range turns {
			if r := <-over; r.Err != nil {
				t.Errorf("turn %d: %v", i, r.Err)
			}
		}
		want := map[string][]string{
			"a": {"starting ", "starts"}, "b": {"starting ", "starts"},
			"c": {"waiting all agents are busy; this is next", "idle ", "starting ", "starts"},
			"d": {"waiting all agents are busy; this is number 2 in the queue", "waiting all agents are busy; this is next", "idle ", "starting ", "starts"},
		}
		if !maps.EqualFunc(told, want, slices.Equal[[]string]) {
			t.Errorf("told %q, want %q", told, want)
		}
		closeService(t, s)
	})
}

// A turn that is aborted while it waits leaves the queue. A turn that is aborted while its agent starts frees its
// place.
func TestAnAbortedTurnFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{open: func(ctx context.Context, s *fakeSession) error {
			if s.begin.Conversation != "a" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		s := newTestService(t, atMost(1), p)
		a, b, c := ask(t, s, "a", quietly), ask(t, s, "b", quietly), ask(t, s, "c", quietly)
		s.Abort("b")
		if r := <-b; !r.Aborted {
			t.Errorf("the waiting turn ended as %+v", r)
		}
		s.Abort("a")
		if r := <-a; !r.Aborted {
			t.Errorf("the starting turn ended as %+v", r)
		}
		if r := <-c; r.Err != nil || r.Text == "" {
			t.Errorf("the third turn ended as %+v", r)
		}
		closeService(t, s)
		if n := len(s.pool.slots); n > 0 {
			t.Errorf("%d processes are counted at the end", n)
		}
	})
}

// A place is free only when its process is dead.
func TestAPlaceIsFreeWhenItsProcessIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{open: func(_ context.Context, s *fakeSession) error { s.closeTime = 5 * time.Second; return nil }}
		s := newTestService(t, atMost(1), p)
		run(t, s, "fake", cli.Request{Conversation: "a"})
		began := time.Now()
		_, events := run(t, s, "fake", cli.Request{Conversation: "b"})
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the second process was started after %s", took)
		}
		if events[0] != (cli.Status{Kind: cli.StatusStarting}) {
			t.Error("it was told to wait for a busy agent, and the only one was idle")
		}
		closeService(t, s)
	})
}

// A process that survives the Close of its session keeps its place until it is dead.
func TestAProcessThatDoesNotEndKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := newFakePlace()
		p := &fakeProvider{open: place.open}
		opts := on(place)
		opts.MaxLive = 1
		s := newTestService(t, opts, p)
		run(t, s, "fake", cli.Request{Conversation: "a"})
		first := p.opened()[0]
		first.closeErr = errors.New("it is stuck")
		b := ask(t, s, "b", quietly)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(p.opened()); n != 1 {
			t.Fatalf("%d sessions were opened", n)
		}
		place.processes[first.pid].die()
		if r := <-b; r.Err != nil {
			t.Error(r.Err)
		}
		closeService(t, s)
	})
}

// While a session cannot be closed, the pauses between the attempts grow, and so does the log more and more slowly.
func TestTheAttemptsToCloseASessionBecomeRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place, logs := newFakePlace(), &bytes.Buffer{}
		p := &fakeProvider{open: place.open}
		opts := on(place)
		opts.MaxLive, opts.Logger = 1, slog.New(slog.NewTextHandler(logs, nil))
		s := newTestService(t, opts, p)
		run(t, s, "fake", cli.Request{Conversation: "a"})
		first := p.opened()[0]
		first.closeErr = errors.New("it is stuck")
		b := ask(t, s, "b", quietly)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := strings.Count(logs.String(), "did not close"); n < 200 || n > 300 {
			t.Errorf("%d attempts in a day", n)
		}
		place.processes[first.pid].die()
		<-b
		closeService(t, s)
	})
}

// A conversation with an idle agent never waits for conversations without one.
func TestAConversationWithItsOwnAgentDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		s := newTestService(t, atMost(2), p)
		run(t, s, "fake", cli.Request{Conversation: "a"})
		time.Sleep(time.Second)
		run(t, s, "fake", cli.Request{Conversation: "b"})
		p.turn = lasting
		b := s.pool.idleSession("b").id
		over := begin(t, s, cli.Request{Conversation: "b", Resume: b}, quietly)
		c, d := ask(t, s, "c", quietly), ask(t, s, "d", quietly) // c takes the place of a, d waits
		if got := living(s); got != "BC" {
			t.Errorf("%q live", got)
		}
		for _, turn := range []chan cli.Result{over, c, d} {
			if r := <-turn; r.Err != nil {
				t.Error(r.Err)
			}
		}
		closeService(t, s)
	})
}

// Sessions of one process count once: they are evicted together, and not while one of them is busy.
func TestSessionsThatShareAProcessCountOnce(t *testing.T) {
	for _, announced := range []bool{true, false} {
		t.Run(fmt.Sprint("announced ", announced), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvider{open: func(_ context.Context, s *fakeSession) error { s.runAs(7, nil); return nil }}
				providers := []cli.Provider{p}
				if announced {
					providers = []cli.Provider{sharing{p}}
				}
				s, err := New(Options{
					Settings: Settings{MaxLive: 2}, Providers: append(providers, &fakeProvider{agent: "own"}),
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range []cli.Conversation{"a", "b", "c"} {
					run(t, s, "fake", cli.Request{Conversation: c})
					time.Sleep(time.Second)
				}
				run(t, s, "own", cli.Request{Conversation: "x"})
				if l := s.Live(t.Context()); l.Processes != 2 || len(l.Sessions) != 4 {
					t.Errorf("%+v", l)
				}
				p.turn = lasting
				a := begin(t, s, cli.Request{Conversation: "a", Resume: p.opened()[0].id}, quietly)
				// X must go, because a is busy, and b and c share its process
				run(t, s, "own", cli.Request{Conversation: "y"})
				if got := living(s); got != "Abcy" {
					t.Errorf("%q live", got)
				}
				<-a
				time.Sleep(time.Second)
				run(t, s, "own", cli.Request{Conversation: "y", Resume: "own-2"})
				run(t, s, "own", cli.Request{Conversation: "z"})
				if got := living(s); got != "yz" {
					t.Errorf("%q live", got)
				}
				closeService(t, s)
			})
		})
	}
}

// A waiting turn starts as soon as there is a process it can share.
func TestATurnDoesNotWaitForWhatItCanShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: lasting, open: func(_ context.Context, s *fakeSession) error {
			time.Sleep(time.Second)
			s.runAs(7, nil)
			return nil
		}}
		s, err := New(Options{Settings: Settings{MaxLive: 1}, Providers: []cli.Provider{sharing{p}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, turn := range []chan cli.Result{ask(t, s, "a", quietly), ask(t, s, "b", quietly), ask(t, s, "c", quietly)} {
			if r := <-turn; r.Err != nil {
				t.Error(r.Err)
			}
		}
		if took := time.Since(began); took > time.Minute+3*time.Second {
			t.Errorf("three turns of a minute in one process took %s", took)
		}
		if l := s.Live(t.Context()); l.Processes != 1 || len(l.Sessions) != 3 {
			t.Errorf("%+v", l)
		}
		closeService(t, s)
	})
}

// sharing is a fakeProvider whose Open would use the process of the newest open session.
type sharing struct{ *fakeProvider }

func (p sharing) Shares(cli.Request) int {
	for _, s := range slices.Backward(p.opened()) {
		if info := s.Info(); info.Alive {
			return info.PID
		}
	}
	return 0
}

// Runs of an earlier ductor count: a new turn waits until they are ended.
func TestWhatWasLeftCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := func(id cli.RunID, c cli.Conversation, turns ...cli.TurnID) cli.LeftRun {
			run := leftRun(id, turns...)
			run.Conversation, run.PID = c, 100+int(id[0])
			return run
		}
		p := &fakeProvider{turn: lasting}
		launcher := &fakeLauncher{slow: 5 * time.Second, runs: []cli.LeftRun{
			left("1", "a", "a"), left("2", "b"), left("3", "c"), left("4", ""),
		}}
		s := newTestService(t, Options{Settings: Settings{MaxLive: 2}, Launchers: []cli.Launcher{launcher}}, p)
		if _, err := s.Survey(t.Context(), []cli.OpenTurn{{Turn: "a", Agent: "fake", Conversation: "a", Start: cli.Start{Run: "1"}}}); err != nil {
			t.Fatal(err)
		}
		if got := living(s); got != "" {
			t.Errorf("%q was taken over", got)
		}
		began := time.Now()
		var x time.Duration
		turns := []chan cli.Result{
			begin(t, s, cli.Request{Conversation: "x", Turn: "x"}, func(ev cli.Event) {
				if _, ok := ev.(cli.SessionStarted); ok {
					x = time.Since(began)
				}
			}),
			make(chan cli.Result, 1),
		}
		go func() {
			turns[1] <- s.Resume(t.Context(), "fake", cli.Request{Conversation: "a", Turn: "a"}, quietly)
		}()
		for _, turn := range turns {
			if r := <-turn; r.Err != nil {
				t.Error(r.Err)
			}
		}
		if x != 5*time.Second {
			t.Errorf("the new turn began after %s, and what was left had ended after 5s", x)
		}
		closeService(t, s)
		if n := len(s.pool.slots); n > 0 {
			t.Errorf("%d processes are counted at the end", n)
		}
	})
}
