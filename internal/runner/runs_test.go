package runner

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// If the runner decides to leave while an upgrade waits, no agent can start after the upgrade failed. Otherwise the
// runner would leave the agent behind.
func TestAFailedUpgradeOfALeavingRunner(t *testing.T) {
	for name, leaves := range map[string]bool{"stays": false, "leaves": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := &agent{in: &input{}}
				stuck.in.mu.Lock()
				s := &server{runs: runTable{agents: map[string]*agent{"stuck": stuck}}}
				var upgraded sync.WaitGroup
				upgraded.Go(func() {
					if s.upgrade("/no/program", nil, nil) == nil {
						t.Error("the upgrade succeeded")
					}
				})
				synctest.Wait()
				if _, err := s.runs.begin("early"); !errors.Is(err, syscall.ESHUTDOWN) {
					t.Errorf("a start during the upgrade: %v", err)
				}
				if leaves {
					s.runs.forbid() // as endAll does
				}
				upgraded.Wait()
				if _, err := s.runs.begin("late"); errors.Is(err, syscall.ESHUTDOWN) != leaves {
					t.Errorf("a start after the upgrade: %v", err)
				}
			})
		})
	}
}

// An idle runner does not leave while an agent starts, or just after one has started.
func TestNewStartsAreForbiddenOnlyWithoutAStart(t *testing.T) {
	var s runTable
	before := sinceBoot()
	done, err := s.begin("one")
	if err != nil {
		t.Fatal(err)
	}
	if s.forbidIfIdle(sinceBoot() + 1) {
		t.Error("the runner leaves during a start")
	}
	if _, err := s.begin("one"); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("a second start of the same run: %v", err)
	}
	done()
	if s.forbidIfIdle(before) {
		t.Error("the runner leaves after a start that it has not seen")
	}
	if began := s.forbidIfIdle(sinceBoot() + 1); !began || s.forbidIfIdle(sinceBoot()+1) {
		t.Errorf("the runner leaves during an upgrade, which began: %v", began)
	}
	s.allow()
	if !s.forbidIfIdle(sinceBoot() + 1) {
		t.Error("an idle runner does not leave")
	}
	if _, err := s.begin("two"); !errors.Is(err, syscall.ESHUTDOWN) {
		t.Errorf("a start of a leaving runner: %v", err)
	}
}

func TestRunTable(t *testing.T) {
	var runs runTable
	if from, empty := runs.idleSince(); !empty || from != 0 {
		t.Errorf("a new table: %s, %v", from, empty)
	}
	began := time.Now()
	older := &agent{record: record{ID: "b", Started: began}}
	newer := &agent{record: record{ID: "a", Started: began.Add(time.Second)}}
	runs.add(newer)
	runs.add(older)
	if got := runs.all(); !slices.Equal(got, []*agent{older, newer}) {
		t.Errorf("not the oldest first: %v", got)
	}
	if got, err := runs.find("a"); got != newer || err != nil {
		t.Errorf("found %v, %v", got, err)
	}
	runs.remove(newer)
	if _, err := runs.find("a"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a deleted run: %v", err)
	}
	if from, empty := runs.idleSince(); empty || from == 0 {
		t.Errorf("with one run: %s, %v", from, empty)
	}
}

// A request for a run that is being started waits for it.
func TestFindWaitsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs runTable
		done, err := runs.begin("one")
		if err != nil {
			t.Fatal(err)
		}
		one := &agent{record: record{ID: "one"}}
		go func() {
			time.Sleep(time.Second)
			runs.add(one)
			done()
		}()
		if got, err := runs.find("one"); got != one || err != nil {
			t.Errorf("found %v, %v", got, err)
		}
	})
}
