package docker

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/docker/dockertest"
)

// Sandboxes with the same image build it only once, even if all of them need it at the same time.
func TestManySandboxesMakeTheirImageOnce(t *testing.T) {
	e := needEngine(t)
	o := testOptions(t, e)
	o.Image, o.Build = "", localImage(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(o.Build.Dir)); err != nil {
		t.Fatal(err)
	}
	o.Build.Dir = dir
	file := filepath.Join(dir, "Dockerfile")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dockertest.Write(t, file, string(raw)+"ENV OWNER="+o.Owner+"\n", 0o644)
	t.Cleanup(func() {
		if _, err := e.CleanImages(contextOfClient(), o.Owner, nil); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { wipe(t, e, o) })
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		o := o
		o.Name = name
		l := open(t, o)
		all.Go(func() {
			if err := l.Prepare(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	made := strings.Fields(dockertest.Docker(t, "images", "-q", "--filter", "label="+labelOwner+"="+o.Owner))
	if len(made) != 2 {
		t.Errorf("%d images were made, want one with the agents and one with the runner", len(made))
	}
}

// Removing a container succeeds even if another client removes it at the same moment.
func TestRemovedTwiceAtOnce(t *testing.T) {
	e := needEngine(t)
	o := testOptions(t, e)
	s := newSandbox(t, o)
	for range 3 {
		s.runTurn()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				if err := e.remove(t.Context(), o.containerName()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	s.runTurn()
}

// A container that its engine cannot start any more is recreated, and nothing waits for its former runs.
func TestAContainerThatCannotBeStartedIsMadeAnew(t *testing.T) {
	o := testOptions(t, needEngine(t))
	network := "ductor-test-" + o.Owner
	o.Network = Network(network)
	anew := func() { dockertest.Docker(t, "network", "create", "--internal", network) }
	anew()
	t.Cleanup(func() {
		wipe(t, o.Engine, o)
		dockertest.Docker(t, "network", "rm", network)
	})
	s := newSandbox(t, o)
	p := s.startReady("echo kept >~/file; cat")
	dockertest.Docker(t, "kill", o.containerName())
	dockertest.Docker(t, "network", "rm", network)
	anew()
	s.awaitGone(p, "stopped")
	s.stop(p)
	q := s.start("cat ~/file")
	if out, err := io.ReadAll(q.Stdout()); err != nil || string(out) != "kept\n" {
		t.Errorf("in the new container %q, %v", out, err)
	}
	s.stop(q)
}
