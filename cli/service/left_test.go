package service

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/turn"
)

// fakeLauncher has runs of the previous process, and records what happens to them.
type fakeLauncher struct {
	runs      []cli.LeftRun
	err       error         // of Left
	slow      time.Duration // duration of a Discard
	hold      error         // of Discard
	mu        sync.Mutex
	discarded []cli.RunID
	settled   []cli.TurnID
}

func (*fakeLauncher) Start(context.Context, cli.Command) (cli.Process, error) {
	return nil, fs.ErrNotExist
}
func (*fakeLauncher) LookPath(string) (string, error) { return "", fs.ErrNotExist }
func (*fakeLauncher) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	return nil, fs.ErrNotExist
}
func (l *fakeLauncher) Left(context.Context) ([]cli.LeftRun, error) { return l.runs, l.err }

func (l *fakeLauncher) Settled(turn cli.TurnID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = append(l.settled, turn)
}

func (l *fakeLauncher) Discard(_ context.Context, run cli.RunID) error {
	time.Sleep(l.slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil {
		l.discarded = append(l.discarded, run)
	}
	return l.hold
}

func (l *fakeLauncher) gone() []cli.RunID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.discarded))
}

// leftRun returns a live run of the conversation "a", of the agent session "s", with the marks of turns.
func leftRun(id cli.RunID, turns ...cli.TurnID) cli.LeftRun {
	run := cli.LeftRun{Run: id, Alive: true, Purpose: cli.Purpose{Agent: "fake", Mode: cli.Live, Conversation: "a", Setting: "s"}}
	for _, turn := range turns {
		run.Marks = append(run.Marks, cli.Mark{Turn: turn})
	}
	return run
}

// working returns a run with background work.
func working(id cli.RunID) cli.LeftRun { return leftRun(id, cli.BackgroundMark) }

// workingIn returns the stored turns of the runs with background work.
func workingIn(runs []cli.LeftRun) (turns []cli.OpenTurn) {
	for _, r := range runs {
		if r.Background() {
			turns = append(turns, cli.OpenTurn{
				Turn: "before " + cli.TurnID(r.Run), Agent: r.Agent, Conversation: r.Conversation, Start: cli.Start{Run: r.Run}, Background: true,
			})
		}
	}
	return turns
}

// Survey handles each run and reports each open turn.
func TestSurvey(t *testing.T) {
	change := func(run cli.LeftRun, f func(*cli.LeftRun)) cli.LeftRun { f(&run); return run }
	turn := cli.OpenTurn{Turn: "1", Agent: "fake", Conversation: "a"}
	for _, tc := range []struct {
		name   string
		runs   []cli.LeftRun
		err    error
		in     cli.RunID // the run that is stored with the turn
		refuse bool      // the provider adopts nothing
		open   bool      // turn 1 is open
		want   cli.Remains
		pooled int
		gone   []cli.RunID
	}{
		{name: "nothing"},
		{name: "nothing of its run", open: true, in: "gone", want: cli.RemainsUnknown},
		{name: "nobody can look", open: true, in: "r", err: errors.New("no"), want: cli.RemainsUnknown},
		{name: "a run that says it has it", runs: []cli.LeftRun{leftRun("r", "1")}, open: true, want: cli.RemainsUnknown, gone: []cli.RunID{"r"}},
		{name: "a run that has it", in: "r", runs: []cli.LeftRun{leftRun("r", "0", "1")}, open: true, want: cli.RemainsRun},
		{name: "a run that has it and cannot be attached to", in: "r", open: true, want: cli.RemainsRun,
			runs: []cli.LeftRun{change(leftRun("r", "1"), func(r *cli.LeftRun) { r.Problem = "too old" })}},
		{name: "a run that has it and is over", in: "r", open: true, want: cli.RemainsRun,
			runs: []cli.LeftRun{change(leftRun("r", "1"), func(r *cli.LeftRun) { r.Alive = false })}},
		{name: "a run of another agent that has it", in: "r", open: true, want: cli.RemainsUnknown, gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{change(leftRun("r", "1"), func(r *cli.LeftRun) { r.Agent = "other" })}},
		{name: "an idle session", runs: []cli.LeftRun{leftRun("r", "0")}, gone: []cli.RunID{"r"}},
		{name: "one that works", runs: []cli.LeftRun{leftRun("r", "0", cli.BackgroundMark)}, pooled: 1},
		{name: "one that works, of the turn's conversation", runs: []cli.LeftRun{working("r")}, open: true, want: cli.RemainsUnknown, pooled: 1},
		{name: "two that work, of a conversation", runs: []cli.LeftRun{working("r"), working("s")}, pooled: 1, gone: []cli.RunID{"s"}},
		{name: "one that works beside one that runs", in: "s", runs: []cli.LeftRun{working("r"), leftRun("s", "1")}, open: true, want: cli.RemainsRun, gone: []cli.RunID{"r"}},
		{name: "one that works and is not adopted", runs: []cli.LeftRun{working("r")}, refuse: true, gone: []cli.RunID{"r"}},
		{name: "one that works and is dead", gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{change(working("r"), func(r *cli.LeftRun) { r.Alive = false })}},
		{name: "one-shot, and nobody's turn", gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{change(leftRun("r", "9"), func(r *cli.LeftRun) { r.Mode = cli.OneShot })}},
		{name: "one that works and is of another version", gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{change(working("r"), func(r *cli.LeftRun) { r.Problem = "too old" })}},
		{name: "nobody's conversation", gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{change(working("r"), func(r *cli.LeftRun) { r.Conversation = "" })}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakeLauncher{runs: tc.runs, err: tc.err}
				p := &fakeProvider{}
				if tc.refuse {
					p.adopt = func(context.Context, cli.LeftRun, *fakeSession) error {
						return cli.Failf(cli.UnknownFailure, "fake", "no")
					}
				}
				s := newTestService(t, on(l), p)
				var open []cli.OpenTurn
				if tc.open {
					turn.Start.Run = tc.in
					open = append(open, turn)
				}
				open = append(open, workingIn(tc.runs)...)
				remains, err := s.Survey(t.Context(), open)
				if remains["1"] != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("remains %q, %v, want %q", remains, err, tc.want)
				}
				synctest.Wait()
				if got := l.gone(); !slices.Equal(got, tc.gone) || len(s.pool.status()) != tc.pooled {
					t.Errorf("ended %v, pooled %+v, want %v and %d", got, s.pool.status(), tc.gone, tc.pooled)
				}
				closeService(t, s)
			})
		})
	}
}

// A session with background work runs the conversation's next turn, in the existing process.
func TestSurveyedSessionTakesTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := &fakeLauncher{runs: []cli.LeftRun{working("r")}}, &fakeProvider{}
		s := newTestService(t, on(l), p)
		if _, err := s.Survey(t.Context(), workingIn(l.runs)); err != nil {
			t.Fatal(err)
		}
		r, _ := run(t, s, "fake", cli.Request{Conversation: "a", Prompt: "on", Resume: "s"})
		if len(p.opened()) != 1 || p.opened()[0].left.Run != "r" || r.AgentSessionID != "s" {
			t.Errorf("%+v in %d sessions", r, len(p.opened()))
		}
		closeService(t, s)
		if !p.opened()[0].isClosed() {
			t.Error("it was not closed with the service")
		}
	})
}

// While a useless run is being ended, nothing is started in its conversation; other conversations are not affected.
func TestSurveyBarsTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := leftRun("r")
		dead.Alive = false
		l, p := &fakeLauncher{runs: []cli.LeftRun{dead}, slow: 3 * time.Second}, &fakeProvider{}
		s := newTestService(t, on(l), p)
		began := time.Now()
		if _, err := s.Survey(t.Context(), nil); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		run(t, s, "fake", cli.Request{Conversation: "b"})
		if took := time.Since(began); took != 0 {
			t.Errorf("another conversation waited %s", took)
		}
		run(t, s, "fake", cli.Request{Conversation: "a"})
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the conversation's next turn began after %s", took)
		}
		closeService(t, s)
	})
}

// surveyed returns a service whose turn "1" is left in a run.
func surveyed(t *testing.T, opts Options, left cli.LeftRun, p *fakeProvider) (*Service, *fakeLauncher) {
	t.Helper()
	l := &fakeLauncher{runs: []cli.LeftRun{left}}
	opts.Launchers = []cli.Launcher{l}
	s := newTestService(t, opts, p)
	remains, err := s.Survey(t.Context(), []cli.OpenTurn{{Turn: "1", Agent: "fake", Conversation: "a", Start: cli.Start{Run: left.Run, Output: 7}}})
	if err != nil || remains["1"] != cli.RemainsRun {
		t.Fatalf("%v, %v", remains, err)
	}
	return s, l
}

func resume(t *testing.T, s *Service, req cli.Request) (cli.Result, []cli.Event) {
	t.Helper()
	var events []cli.Event
	r := s.Resume(t.Context(), "fake", req, func(ev cli.Event) { events = append(events, ev) })
	if last, ok := events[len(events)-1].(cli.Result); !ok || last.Text != r.Text || last.Err != r.Err || last.Detached != r.Detached {
		t.Errorf("the last event is %#v, returned was %#v", events[len(events)-1], r)
	}
	return r, events
}

// A dialect gets the turns that are stored as starting in the run, and no others that the run's own marks name.
func TestOnlyStoredTurnsAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{}
		s, _ := surveyed(t, Options{}, leftRun("r", "0", "1", cli.BackgroundMark), p)
		if r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"}); r.Err != nil {
			t.Error(r.Err)
		}
		if marks := p.opened()[0].left.Marks; len(marks) != 1 || marks[0] != (cli.Mark{Turn: "1", Output: 7}) {
			t.Errorf("adopted with the marks %+v", marks)
		}
		closeService(t, s)
	})
}

func TestResumeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(_ context.Context, s *fakeSession, req cli.Request, em *turn.Emitter) {
			em.Session(s.id, "m")
			em.Text("a", "while you were away")
			em.Pass(cli.CaughtUp{})
			em.Finish(cli.Result{})
		}}
		s, l := surveyed(t, Options{}, leftRun("r", "1"), p)
		req := cli.Request{Turn: "1", Conversation: "a"}
		r, _ := resume(t, s, req)
		if r.Err != nil || r.Text != "while you were away" || r.Fallback {
			t.Errorf("%+v", r)
		}
		p.turn = nil
		run(t, s, "fake", cli.Request{Turn: "2", Conversation: "a", Resume: "s"}) // in the same process
		if n := len(p.opened()); n != 1 || len(l.gone()) > 0 {
			t.Errorf("%d sessions, ended %v", n, l.gone())
		}
		s.Settled("1")
		synctest.Wait()
		if diff := cmp.Diff([]cli.TurnID{"1"}, l.settled); diff != "" {
			t.Error(diff)
		}
		if r, _ := resume(t, s, req); r.Err == nil { // only once
			t.Errorf("a second time it is %+v", r)
		}
		closeService(t, s)
	})
}

// A resumed turn that broke is never repeated, even if nothing was shown: it may have had effects.
func TestResumeNeverRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := 0
		p := &fakeProvider{turn: func(_ context.Context, _ *fakeSession, _ cli.Request, em *turn.Emitter) {
			turns++
			em.Finish(cli.Result{Err: cli.Failf(cli.Crashed, "", "x")})
		}}
		s, _ := surveyed(t, Options{}, leftRun("r", "1"), p)
		if r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"}); r.Err == nil || r.Err.Kind != cli.Crashed || turns != 1 {
			t.Errorf("%+v after %d turns", r, turns)
		}
		closeService(t, s)
	})
}

// The time limit of a turn counts from its start, not from ductor's.
func TestResumeTimesOut(t *testing.T) {
	for _, tc := range []struct{ ago, want time.Duration }{
		{20 * time.Minute, 40 * time.Minute}, {5 * time.Hour, leastLimit}, {0, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := surveyed(t, timingOut(time.Hour), leftRun("r", "1"), &fakeProvider{turn: obedient})
			began := time.Now()
			r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a", Began: began.Add(-tc.ago)})
			if took := time.Since(began); took != tc.want || r.Err == nil || r.Err.Kind != cli.TimedOut {
				t.Errorf("begun %s ago, it ended after %s with %+v", tc.ago, took, r.Err)
			}
			closeService(t, s)
		})
	}
}

func TestResumeCanBeAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: obedient}
		s, _ := surveyed(t, Options{}, leftRun("r", "1"), p)
		time.AfterFunc(time.Second, func() {
			if !s.AbortTurn("1") {
				t.Error("it does not run")
			}
		})
		r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"})
		if !r.Aborted || r.Text != "half" || !p.opened()[0].isClosed() {
			t.Errorf("%+v, closed %v", r, p.opened()[0].isClosed())
		}
		closeService(t, s)
	})
}

// A run that cannot be resumed is ended, and the chat shows why in plain words.
func TestResumeOfWhatCannotBe(t *testing.T) {
	old := leftRun("r", "1")
	old.Problem = "its runner speaks version 1, this ductor needs 2"
	for _, tc := range []struct {
		name string
		left cli.LeftRun
		p    *fakeProvider
		want string
	}{
		{"refused", old, &fakeProvider{}, "Fake failed: it cannot be resumed and was ended, because its runner speaks version 1, this ductor needs 2."},
		{"not adopted", leftRun("r", "1"), &fakeProvider{adopt: func(context.Context, cli.LeftRun, *fakeSession) error {
			return cli.Failf(cli.Crashed, "fake", "gone")
		}}, "gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := surveyed(t, Options{}, tc.left, tc.p)
				r, _ := resume(t, s, cli.Request{Turn: "1", Conversation: "a"})
				if r.Err == nil || !strings.Contains(r.Err.Error(), tc.want) {
					t.Errorf("%+v", r.Err)
				}
				synctest.Wait()
				if !slices.Equal(l.gone(), []cli.RunID{"r"}) {
					t.Errorf("ended %v", l.gone())
				}
				closeService(t, s)
			})
		})
	}
}

func detachService(t *testing.T, s *Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Detach(ctx); err != nil {
		t.Error(err)
	}
}

// Detach detaches from running turns and from sessions with background work, which Close ends. It ends idle ones.
func TestServiceDetach(t *testing.T) {
	for _, detach := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvider{}
			s := serve(t, p)
			run(t, s, "fake", cli.Request{Conversation: "works"})
			p.opened()[0].works = true
			run(t, s, "fake", cli.Request{Conversation: "idle"})
			p.turn = obedient
			done := make(chan cli.Result)
			go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: "busy"}, func(cli.Event) {}) }()
			synctest.Wait()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if detach {
					detachService(t, s)
				}
				closeService(t, s)
			}()
			r := <-done
			<-ended
			if r.Detached != detach || (r.Err == nil) != detach || r.Text != "half" {
				t.Errorf("detach %v: %+v, %+v", detach, r, r.Err)
			}
			for i, session := range p.opened() {
				if stays := detach && i != 1; session.isDetached() != stays || session.isClosed() == stays {
					t.Errorf("detach %v: session %d is detached %v, closed %v", detach, i, session.isDetached(), session.isClosed())
				}
			}
			if late, _ := run(t, s, "fake", cli.Request{}); late.Detached != detach {
				t.Errorf("detach %v: a turn that comes too late is %+v", detach, late)
			}
			if st := s.pool.status(); len(st) > 0 {
				t.Errorf("still there: %+v", st)
			}
		})
	}
}

// If a turn ends by itself while ductor detaches, its session stays if it has background work.
func TestServiceDetachAsATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: func(ctx context.Context, s *fakeSession, _ cli.Request, em *turn.Emitter) {
			em.Session(s.id, "m")
			em.Text("a", "all")
			s.works = true
			<-ctx.Done()
			em.Finish(cli.Result{})
		}}
		s := serve(t, p)
		done := make(chan cli.Result)
		go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: "a"}, func(cli.Event) {}) }()
		synctest.Wait()
		go detachService(t, s)
		if r := <-done; r.Detached || r.Err != nil || r.Text != "all" {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if session := p.opened()[0]; session.isClosed() || !session.isDetached() {
			t.Errorf("closed %v, detached %v", session.isClosed(), session.isDetached())
		}
	})
}

// A turn that is being ended when ductor detaches is still ended.
func TestServiceDetachAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvider{turn: obedient}
		p.open = func(_ context.Context, s *fakeSession) error { s.closeTime = time.Second; return nil }
		s := serve(t, p)
		done := make(chan cli.Result)
		go func() { done <- s.Run(t.Context(), "fake", cli.Request{Conversation: "a"}, func(cli.Event) {}) }()
		synctest.Wait()
		s.Abort("a")
		detachService(t, s)
		if r := <-done; !r.Aborted || !p.opened()[0].isClosed() || p.opened()[0].isDetached() {
			t.Errorf("%+v, closed %v, detached %v", r, p.opened()[0].isClosed(), p.opened()[0].isDetached())
		}
	})
}

// If the disk loses the outcome of a turn, the next start reads the agent's output again. So the output stays until a
// flush succeeds. After a failed flush, one goroutine tries again, also for turns that are settled meanwhile.
func TestTheOutputOfATurnStaysUntilItsOutcomeIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{}
		var flushes, failures atomic.Int64
		failures.Store(2)
		flush := func(context.Context) error {
			if flushes.Add(1) <= failures.Load() {
				return fs.ErrInvalid
			}
			return nil
		}
		s := newTestService(t, Options{Launchers: []cli.Launcher{l}, Flush: flush}, &fakeProvider{})
		await := func(d time.Duration, wantFlushes int64, settled ...cli.TurnID) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if n := flushes.Load(); n != wantFlushes || !slices.Equal(l.settled, settled) {
				t.Errorf("after %s: %d flushes, settled %v", d, n, l.settled)
			}
		}
		s.Settled("1")
		await(0, 1)
		s.Settled("2")
		await(flushRetry, 2)
		await(flushRetry, 4, "1", "2")
		s.Settled("3")
		await(0, 5, "1", "2", "3")
		failures.Store(1000)
		s.Settled("4")
		closeService(t, s) // it does not wait for the disk
		await(flushRetry, 6, "1", "2", "3")
	})
}
