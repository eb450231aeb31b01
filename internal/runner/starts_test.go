package runner

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// If the runner decides to leave while an upgrade waits, no agent can start after the upgrade failed. Otherwise the
// runner would leave the agent behind.
func TestAFailedUpgradeOfALeavingRunner(t *testing.T) {
	for name, leaves := range map[string]bool{"stays": false, "leaves": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := &agent{in: &input{}}
				stuck.in.mu.Lock()
				s := &server{runs: map[string]*agent{"stuck": stuck}}
				var upgraded sync.WaitGroup
				upgraded.Go(func() {
					if s.upgrade("/no/program", nil, nil) == nil {
						t.Error("the upgrade succeeded")
					}
				})
				synctest.Wait()
				if _, err := s.starts.begin("early"); !errors.Is(err, syscall.ESHUTDOWN) {
					t.Errorf("a start during the upgrade: %v", err)
				}
				if leaves {
					s.starts.forbid() // as endAll does
				}
				upgraded.Wait()
				if _, err := s.starts.begin("late"); errors.Is(err, syscall.ESHUTDOWN) != leaves {
					t.Errorf("a start after the upgrade: %v", err)
				}
			})
		})
	}
}

// An idle runner does not leave while an agent starts, or just after one has started.
func TestNewStartsAreForbiddenOnlyWithoutAStart(t *testing.T) {
	var s starts
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
