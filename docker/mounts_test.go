package docker

import (
	"errors"
	"sync/atomic"
	"testing"

	"ductor/docker/dockertest"
	"ductor/internal/runner"
)

// An agent replaces a mounted directory at any moment before or while a container starts. No program runs in the
// container then, and none of its mounts stays. A container that runs already keeps its directories, and is used.
func TestAttackMountsThatChange(t *testing.T) {
	o := testOptions(t, needEngine(t))
	var good atomic.Int64 // how many of the next checks succeed
	o.CheckMounts = func() error {
		if good.Add(-1) < 0 {
			return errors.New("its folder leads elsewhere")
		}
		return nil
	}
	s := newSandbox(t, o)
	expect := func(want State) {
		t.Helper()
		if is, err := s.Status(t.Context()); err != nil || is.Is != want {
			t.Errorf("the container is %s, want %s: %v", is.Is, want, err)
		}
	}
	refused := func(after int64, want State) {
		t.Helper()
		good.Store(after)
		_, err := s.Launcher.Start(t.Context(), shell(o, s.canary, "true"))
		s.expectFailure(err, "its folder leads elsewhere")
		expect(want)
	}
	works := func(checks int64) {
		t.Helper()
		good.Store(checks)
		s.runTurn()
		expect(StateRunning)
	}
	for checks := range int64(3) { // before it is created, before it is started, after that
		refused(checks, StateNone)
	}
	works(3)
	works(0)
	dockertest.Docker(t, "stop", "--time", "0", o.containerName())
	refused(0, StateStopped)
	refused(1, StateNone)
	works(3)
	for checks := range int64(2) {
		good.Store(checks)
		if err := s.remote.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		expect(StateNone)
		works(3)
	}
	good.Store(2)
	if err := s.remote.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	expect(StateRunning)
}

// After a link of the configuration leads to another directory, nothing starts the container with the former one, whose
// path an agent may have replaced by a link. The next turn creates the container anew.
func TestAttackMountsOfAFormerContainer(t *testing.T) {
	o := testOptions(t, needEngine(t))
	newSandbox(t, o).runTurn()
	dockertest.Docker(t, "stop", "--time", "0", o.containerName())
	o.Projects = []string{t.TempDir()}
	s := newSandbox(t, o)
	if err := s.remote.startExisting(t.Context()); !errors.Is(err, runner.ErrNoEnvironment) {
		t.Errorf("the former container: %v", err)
	}
	if is, err := s.Status(t.Context()); err != nil || is.Is != StateStopped {
		t.Errorf("the former container is %s, %v", is.Is, err)
	}
	s.runTurn()
	o.Projects = []string{t.TempDir()}
	s = newSandbox(t, o)
	if err := s.remote.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	if is, err := s.Status(t.Context()); err != nil || is.Is != StateNone {
		t.Errorf("the former container is %s after a restart, %v", is.Is, err)
	}
}
