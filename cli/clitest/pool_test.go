package clitest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/host"
	"ductor/cli/service"
	"ductor/internal/proctree"
)

var poolRounds = flag.Int("pool-rounds", 3, "how many turns each of thirty conversations has over four processes")

const (
	poolConversations = 30
	poolCap           = 4
)

// TestThirtyConversationsOnFourProcesses tests that every turn is answered in its own session, that at most four
// processes run at a time, that ductor's memory does not grow, and that no process is left.
func TestThirtyConversationsOnFourProcesses(t *testing.T) {
	st := newStage(t, Harness{Mode: cli.Live, New: func(t *testing.T) (cli.Provider, cli.Request) {
		return &plainProvider{}, cli.Request{Permission: cli.Bypass, Dir: t.TempDir()}
	}})
	book := &ledger{Launcher: Host(t)}
	s, err := service.New(service.Options{
		Providers: []cli.Provider{scriptedPlain(t).over(book)}, Launchers: []cli.Launcher{book},
		Settings: service.Settings{MaxLive: poolCap, MaxMemoryMB: 1 << 20}, MemoryEvery: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, counted := make(chan struct{}), make(chan census)
	go func() { counted <- takeCensus(st, stop) }()

	sessions := make([]cli.AgentSessionID, poolConversations)
	var first, last footprint
	began := time.Now()
	for round := range *poolRounds {
		playRound(t, st, s, sessions, round)
		if round == 0 {
			first = footprintOf(t, s)
		}
	}
	took := time.Since(began)
	// The resources of an evicted process are released in the background.
	for deadline := time.Now().Add(time.Minute); ; {
		if last = footprintOf(t, s); last.goroutines <= first.goroutines+2 || time.Now().After(deadline) {
			break
		}
	}
	closeInTime(t, s)
	close(stop)
	c := <-counted
	turns := poolConversations * *poolRounds
	t.Logf("%d turns of %d conversations in %s; %d processes were started, at most %d of %d lived at once (%d seen in %d looks); heap %d KB after the first round and %d KB after the last; goroutines %d and %d",
		turns, poolConversations, took.Round(time.Millisecond), book.started, book.most, poolCap, c.most, c.looks,
		first.heap>>10, last.heap>>10, first.goroutines, last.goroutines)
	if c.most > poolCap || c.most == 0 {
		t.Errorf("%d processes were seen at once, and %d may live: %v", c.most, poolCap, c.who)
	}
	if book.most > poolCap || book.living > 0 {
		t.Errorf("%d processes lived at once, and %d may; %d were not ended", book.most, poolCap, book.living)
	}
	if last.goroutines > first.goroutines+2 {
		t.Errorf("%d goroutines after the first round, %d after the last", first.goroutines, last.goroutines)
	}
	if last.heap > first.heap+2<<20 {
		t.Errorf("%d bytes are held after the first round, %d after the last", first.heap, last.heap)
	}
	if left := st.processes(); len(left) > 0 {
		t.Errorf("these processes are left: %v", left)
	}
}

// playRound asks all conversations at the same time for their earlier prompts.
func playRound(t *testing.T, st *stage, s *service.Service, sessions []cli.AgentSessionID, round int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			req := st.ask(st.script.Say(fmt.Sprintf("turn %d of %d", round, i)))
			req.Turn = cli.TurnID(uuid.NewString())
			req.Conversation, req.Resume = cli.Conversation(fmt.Sprint(i)), sessions[i]
			r := s.Run(t.Context(), plain, req, func(cli.Event) {})
			s.Settled(req.Turn)
			if r.Err != nil || r.Text != fmt.Sprintf("turn %d of %d", round, i) {
				t.Errorf("conversation %d, turn %d: %+v, %+v", i, round, r, r.Err)
			}
			if sessions[i] != "" && r.AgentSessionID != sessions[i] {
				t.Errorf("conversation %d goes on in %s, and was in %s", i, r.AgentSessionID, sessions[i])
			}
			sessions[i] = r.AgentSessionID
		})
	}
	all.Wait()
}

// census is the result of counting the agents' processes.
type census struct {
	looks, most int
	who         []proctree.ID
}

// takeCensus counts the processes over and over. It pauses longer than a count takes, so that the turns get most of the
// processor.
func takeCensus(st *stage, stop chan struct{}) (c census) {
	for {
		select {
		case <-stop:
			return c
		case <-time.After(10 * look):
		}
		c.looks++
		if running := st.processes(); len(running) > c.most {
			c.most, c.who = len(running), running
		}
	}
}

// footprint is ductor's use of resources between two rounds.
type footprint struct {
	heap       uint64
	goroutines int
}

// footprintOf waits for evicted processes and background work, and then measures.
func footprintOf(t *testing.T, s *service.Service) (f footprint) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * look) {
		live := s.Live(t.Context())
		n := runtime.NumGoroutine()
		if live.Processes == poolCap && len(live.Sessions) == poolCap && n == f.goroutines {
			break
		}
		if f.goroutines = n; time.Now().After(deadline) {
			t.Fatalf("it does not come to rest: %+v, %d goroutines", live, n)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // collects objects that finalizers released
	runtime.ReadMemStats(&m)
	f.heap = m.HeapAlloc
	return f
}

// ledger counts processes from the call that starts them until their end, which periodic counting may miss.
type ledger struct {
	*host.Launcher

	mu                    sync.Mutex
	living, most, started int
}

func (l *ledger) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.living += n
	l.started += max(n, 0)
	l.most = max(l.most, l.living)
}

func (l *ledger) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	l.add(1)
	p, err := l.Launcher.Start(ctx, cmd)
	if err != nil {
		l.add(-1)
		return nil, err
	}
	return &entry{Process: p, book: l}, nil
}

// entry is a process that is in a ledger.
type entry struct {
	cli.Process
	book *ledger
	once sync.Once
}

func (e *entry) Stop(ctx context.Context, grace time.Duration) error {
	err := e.Process.Stop(ctx, grace)
	if err == nil {
		e.once.Do(func() { e.book.add(-1) })
	}
	return err
}
