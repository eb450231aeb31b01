package docker

import (
	"errors"
	"os"
	"path/filepath"
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

// An agent replaces a seed inside the roots by a link. The file to which the link leads is not copied. Other seeds, such
// as log-ins in the user's home, may be links.
func TestAttackASeedBecomesALink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret, seed := filepath.Join(dir, "secret"), filepath.Join(dir, "seed")
	if err := errors.Join(os.WriteFile(secret, []byte("key"), 0o600), os.Symlink(secret, seed)); err != nil {
		t.Fatal(err)
	}
	for _, fixed := range []bool{true, false} {
		s, err := newSeedArchive("1000:1000")
		if err != nil {
			t.Fatal(err)
		}
		err = s.addAll([]Seed{{From: seed, To: "seed", Fixed: fixed}})
		if (err != nil) != fixed || s.made["seed"] == fixed {
			t.Errorf("a fixed seed (%v) is copied: %v, %v", fixed, s.made, err)
		}
	}
}
