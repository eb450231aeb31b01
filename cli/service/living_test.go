package service

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// An idle process that dies is noticed at once, and the next turn runs in another one.
func TestAnIdleProcessThatDiesIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := newFakePlace()
		p := &fakeProvider{open: place.open}
		s := newTestService(t, on(place), p)
		one, _ := run(t, s, "fake", cli.Request{Conversation: "a"})
		place.processes[p.opened()[0].pid].die()
		synctest.Wait()
		if n, _, _ := s.pool.held(); !p.opened()[0].isClosed() || n > 0 {
			t.Errorf("after the crash %d processes are counted", n)
		}
		if got := living(s); got != "" {
			t.Errorf("status shows %q", got)
		}
		two, _ := run(t, s, "fake", cli.Request{Conversation: "a", Resume: one.AgentSessionID})
		if two.AgentSessionID != one.AgentSessionID || len(p.opened()) != 2 {
			t.Errorf("it went on as %+v in session %d", two, len(p.opened()))
		}
		closeService(t, s)
	})
}

// The same for a process that dies while its turn gives it back.
func TestAProcessThatDiesAsItIsGivenBackIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := newFakePlace()
		p := &fakeProvider{open: place.open, turn: func(_ context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Finish(cli.Result{})
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = func() {
				s.process.die()
				synctest.Wait()
			}
		}}
		s := newTestService(t, on(place), p)
		s.Run(t.Context(), "fake", cli.Request{Conversation: "a"}, quietly)
		synctest.Wait()
		if processes, idles, _ := s.pool.held(); !p.opened()[0].isClosed() || processes+idles > 0 {
			t.Errorf("after the crash %d processes are counted, and %d sessions are idle", processes, idles)
		}
		closeService(t, s)
	})
}

// Beyond the memory limit idle processes are ended, the longest idle one first; busy ones never are.
func TestMemoryIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := newFakePlace()
		p := &fakeProvider{open: place.open}
		s := newTestService(t, Options{
			Settings: Settings{MaxMemoryMB: 100}, MemoryEvery: 10 * time.Second, Launchers: []cli.Launcher{place},
		}, p)
		grow := func(c cli.Conversation, megabytes int64) {
			for _, f := range p.opened() {
				if f.begin.Conversation == c {
					place.processes[f.pid].memory.Store(megabytes << 20)
				}
			}
		}
		for _, c := range []cli.Conversation{"a", "b", "c"} {
			run(t, s, "fake", cli.Request{Conversation: c})
			grow(c, 30)
			time.Sleep(time.Second)
		}
		got, l := living(s), s.Live(t.Context())
		if got != "abc" || l.Memory != 90<<20 || l.Sessions[0].Memory != 30<<20 || l.MaxMemory != 100<<20 {
			t.Errorf("%q live, %+v", got, l)
		}
		grow("c", 45)
		time.Sleep(11 * time.Second)
		if got := living(s); got != "bc" {
			t.Errorf("%q live with 105 of 100 MB before", got)
		}
		p.turn = lasting
		b := p.opened()[1].id
		over := begin(t, s, cli.Request{Conversation: "b", Resume: b}, quietly)
		grow("b", 500)
		time.Sleep(11 * time.Second)
		if got := living(s); got != "B" {
			t.Errorf("%q live while the busy one holds too much", got)
		}
		if r := <-over; r.Err != nil {
			t.Error(r.Err)
		}
		time.Sleep(time.Second)
		if got := living(s); got != "" { // measured after the turn, not only periodically
			t.Errorf("%q live after its turn", got)
		}
		closeService(t, s)
	})
}

// After a turn its own process is measured; the others are measured periodically.
func TestATurnMeasuresItsOwnProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		place := newFakePlace()
		p := &fakeProvider{open: place.open}
		s := newTestService(t, Options{
			Settings: Settings{MaxMemoryMB: 100}, MemoryEvery: time.Minute, Launchers: []cli.Launcher{place},
		}, p)
		for _, c := range []cli.Conversation{"a", "b"} {
			run(t, s, "fake", cli.Request{Conversation: c})
			for _, process := range place.processes {
				process.memory.Store(10 << 20)
			}
			time.Sleep(100 * time.Second)
		}
		asked := func() (a, b int64) { return place.processes[100].asked.Load(), place.processes[101].asked.Load() }
		a, b := asked()
		time.Sleep(time.Second)
		run(t, s, "fake", cli.Request{Conversation: "b", Resume: p.opened()[1].id})
		time.Sleep(time.Second)
		if a2, b2 := asked(); a2 != a || b2 == b {
			t.Errorf("after a turn of b, a was measured %d times and b %d times", a2-a, b2-b)
		}
		time.Sleep(100 * time.Second)
		if a2, _ := asked(); a2 == a {
			t.Error("a is measured no more")
		}
		closeService(t, s)
	})
}

// fakePlace is a launcher that finds its processes by their numbers.
type fakePlace struct {
	fakeLauncher
	mu        sync.Mutex
	processes map[int]*measuredProcess
}

func newFakePlace() *fakePlace { return &fakePlace{processes: map[int]*measuredProcess{}} }

// open is fakeProvider.open: each session has its own process.
func (l *fakePlace) open(_ context.Context, s *fakeSession) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	process := &measuredProcess{playedProcess: newPlayedProcess()}
	pid := 100 + len(l.processes)
	l.processes[pid] = process
	s.runAs(pid, process)
	return nil
}

func (l *fakePlace) Find(_ cli.Agent, pid int) cli.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.processes[pid]; p != nil {
		return p
	}
	return nil
}
