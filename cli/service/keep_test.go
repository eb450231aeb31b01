package service

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// keeper is a fakeProvider that keeps processes, and whose sessions are put into the one that it keeps.
type keeper struct {
	*fakeProvider
	keep func(context.Context) error

	mu   sync.Mutex
	kept []*fakeSession
}

func (k *keeper) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	if k.keep != nil {
		if err := k.keep(ctx); err != nil {
			return cli.Kept{}, err
		}
	}
	s := &fakeSession{p: k.fakeProvider, mode: cli.Live, left: left, pid: left.PID}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, s)
	return cli.Kept{PID: s.pid, Alive: func() bool { return !s.isClosed() }, Close: s.Close, Detach: s.Detach}, nil
}

func (k *keeper) Shares(cli.Request) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.kept {
		if !s.isClosed() {
			return s.pid
		}
	}
	return 0
}

func (k *keeper) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	s, err := k.fakeProvider.Open(ctx, mode, req)
	if err == nil {
		s.(*fakeSession).runAs(k.Shares(req), nil)
	}
	return s, err
}

// sharedRun is a process of several conversations in which nothing runs.
func sharedRun(id cli.RunID, pid int) cli.LeftRun {
	run := leftRun(id, cli.RestMark)
	run.Conversation, run.PID = "", pid
	return run
}

func keeping(t *testing.T, opts Options, k *keeper, runs ...cli.LeftRun) (*Service, *fakeLauncher) {
	t.Helper()
	l := &fakeLauncher{runs: runs}
	opts.Providers, opts.Launchers = append([]cli.Provider{k}, opts.Providers...), append([]cli.Launcher{l}, opts.Launchers...)
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// What was begun in a process that is kept is recorded, and is not remembered as begun for ever.
func TestTurnsOfAProcessThatIsKeptAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := sharedRun("r", 7)
		run.Marks = []cli.Mark{{Turn: "9"}, {Turn: cli.RestMark}}
		s, l := keeping(t, Options{}, &keeper{fakeProvider: &fakeProvider{}}, run)
		if _, err := s.Survey(t.Context(), nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !slices.Equal(l.settled, []cli.TurnID{"9"}) {
			t.Errorf("settled %v", l.settled)
		}
		closeService(t, s)
	})
}

// What becomes of each process that served several conversations.
func TestWhichProcessesAreKept(t *testing.T) {
	change := func(f func(*cli.LeftRun)) cli.LeftRun { run := sharedRun("r", 7); f(&run); return run }
	no := func(context.Context) error { return cli.Failf(cli.UnknownFailure, "fake", "another version") }
	for _, tc := range []struct {
		name string
		runs []cli.LeftRun
		keep func(context.Context) error
		open bool // turn 1 is
		want []cli.RunID
		gone []cli.RunID
	}{
		{name: "nothing runs in it", runs: []cli.LeftRun{sharedRun("r", 7)}, want: []cli.RunID{"r"}},
		{name: "nobody knows what runs in it", runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Marks = nil })}, gone: []cli.RunID{"r"}},
		{name: "a turn began in it", runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Marks = append(r.Marks, cli.Mark{Turn: "9"}) })}, gone: []cli.RunID{"r"}},
		{name: "a turn ended in it", runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Marks = []cli.Mark{{Turn: "9"}, {Turn: cli.RestMark}} })}, want: []cli.RunID{"r"}},
		{name: "it is dead", runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Alive = false })}, gone: []cli.RunID{"r"}},
		{name: "it cannot be attached to", runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Problem = "too old" })}, gone: []cli.RunID{"r"}},
		{name: "its provider refuses it", runs: []cli.LeftRun{sharedRun("r", 7)}, keep: no, gone: []cli.RunID{"r"}},
		{name: "its provider panics", runs: []cli.LeftRun{sharedRun("r", 7)}, keep: func(context.Context) error { panic("oh") }, gone: []cli.RunID{"r"}},
		{name: "its provider does not come to an end", runs: []cli.LeftRun{sharedRun("r", 7)}, gone: []cli.RunID{"r"},
			keep: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{name: "two of one setting", runs: []cli.LeftRun{sharedRun("r", 7), sharedRun("s", 8)}, want: []cli.RunID{"r"}, gone: []cli.RunID{"s"}},
		{name: "two settings", want: []cli.RunID{"r", "s"},
			runs: []cli.LeftRun{change(func(r *cli.LeftRun) { r.Run, r.Setting, r.PID = "s", "t", 8 }), sharedRun("r", 7)}},
		{name: "beside one of its setting in which a turn runs", open: true, gone: []cli.RunID{"r"},
			runs: []cli.LeftRun{sharedRun("r", 7), change(func(r *cli.LeftRun) { r.Run, r.PID, r.Marks = "s", 8, []cli.Mark{{Turn: "1"}} })}},
		{name: "more than there may be", gone: []cli.RunID{"u"}, want: []cli.RunID{"r", "s"}, runs: []cli.LeftRun{
			sharedRun("r", 7), change(func(r *cli.LeftRun) { r.Run, r.Setting, r.PID = "s", "t", 8 }), change(func(r *cli.LeftRun) { r.Run, r.Setting, r.PID = "u", "v", 9 }),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{fakeProvider: &fakeProvider{}, keep: tc.keep}
				s, l := keeping(t, Options{MaxSessions: 2}, k, tc.runs...)
				var open []cli.OpenTurn
				if tc.open {
					open = []cli.OpenTurn{{Turn: "1", Agent: "fake", Conversation: "a"}}
				}
				began := time.Now()
				if _, err := s.Survey(t.Context(), open); err != nil || time.Since(began) != 0 {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				time.Sleep(keepWait)
				synctest.Wait()
				var kept []cli.RunID
				for _, f := range k.kept {
					kept = append(kept, f.left.Run)
				}
				slices.Sort(kept)
				if gone := l.gone(); !slices.Equal(kept, tc.want) || !slices.Equal(gone, tc.gone) {
					t.Errorf("kept %v, ended %v; want %v and %v", kept, gone, tc.want, tc.gone)
				}
				closeService(t, s)
			})
		})
	}
}

// A process that is kept is one of those that there may be: it is shared by sessions, shown to nobody as one, and
// ended when it is idle for long, or another agent needs its place.
func TestAKeptProcessIsOneOfThePool(t *testing.T) {
	for name, tc := range map[string]struct {
		then  func(t *testing.T, s *Service)
		ended bool
	}{
		"shared": {func(t *testing.T, s *Service) {
			run(t, s, "fake", cli.Request{Conversation: "a"})
			run(t, s, "fake", cli.Request{Conversation: "b"})
			if l := s.Live(t.Context()); l.Processes != 1 || living(s) != "ab" {
				t.Errorf("%d processes, live %q", l.Processes, living(s))
			}
		}, false},
		"idle": {func(_ *testing.T, s *Service) { time.Sleep(time.Hour); synctest.Wait() }, true},
		"in use": {func(t *testing.T, s *Service) {
			time.Sleep(59 * time.Minute)
			run(t, s, "fake", cli.Request{Conversation: "a"})
			time.Sleep(30 * time.Minute) // the session keeps the process now
			if got := living(s); got != "a" {
				t.Errorf("%q lives", got)
			}
		}, true},
		"in the way": {func(t *testing.T, s *Service) { run(t, s, "other", cli.Request{Conversation: "a"}) }, true},
		"dead": {func(_ *testing.T, s *Service) {
			s.runEnvs.get("").launchers[1].(*fakePlace).processes[7].die()
			synctest.Wait()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{fakeProvider: &fakeProvider{}}
				place := newFakePlace()
				place.processes[7] = &measuredProcess{playedProcess: newPlayedProcess()}
				place.processes[7].memory.Store(50)
				s, _ := keeping(t, Options{
					MaxSessions: 1, IdleLimit: time.Hour, Launchers: []cli.Launcher{place}, Providers: []cli.Provider{&fakeProvider{agent: "other"}},
				}, k, sharedRun("r", 7))
				if _, err := s.Survey(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if l := s.Live(t.Context()); l.Processes != 1 || l.Memory != 50 || len(l.Sessions) != 0 {
					t.Errorf("%+v", l)
				}
				tc.then(t, s)
				if ended := k.kept[0].isClosed(); ended != tc.ended {
					t.Errorf("ended: %v, want %v", ended, tc.ended)
				}
				closeService(t, s)
				if !k.kept[0].isClosed() || len(s.pool.places) > 0 {
					t.Error("it outlived the service")
				}
			})
		})
	}
}

// A ductor that is let go of while it takes a process over, or after that, leaves it as it is.
func TestAKeptProcessIsLetGoOf(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{fakeProvider: &fakeProvider{}}
			if early {
				k.keep = func(ctx context.Context) error { <-ctx.Done(); return errors.Join(ctx.Err(), fs.ErrNotExist) }
			}
			s, l := keeping(t, Options{}, k, sharedRun("r", 7))
			if _, err := s.Survey(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := s.Detach(t.Context()); err != nil {
				t.Error(err)
			}
			if gone := l.gone(); len(gone) > 0 || !early && (!k.kept[0].isDetached() || k.kept[0].isClosed()) {
				t.Errorf("early %v: ended %v, kept %+v", early, gone, k.kept)
			}
		})
	}
}
