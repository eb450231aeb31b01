package docker

import (
	"io"
	"testing"

	"ductor/docker/dockertest"
)

// A container is replaced by one of a newer image at the next start or look-up, but not while something runs in it.
func TestANewerImageIsTakenAsSoonAsNothingIsLost(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	o.Image = "ductor-test-" + o.Owner
	container := func() string { return dockertest.Docker(t, "inspect", "--format", "{{.Id}}", o.containerName()) }
	dockertest.Build(t, dockertest.Host(), o.Image, "RUN rm /bin/tr\n")
	s := newSandbox(t, o)
	p := s.startReady("cat")
	first := container()
	if path, err := s.LookPath("tr"); err == nil {
		t.Fatalf("the image has %s", path)
	}
	dockertest.Build(t, dockertest.Host(), o.Image, "")
	s.runTurn()
	if err := s.Prepare(t.Context()); err != nil || container() != first {
		t.Errorf("the container of a run is gone: %v", err)
	}
	if _, err := io.WriteString(p.Stdin(), "still there\n"); err != nil {
		t.Error(err)
	}
	line := make([]byte, 12)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil || string(line) != "still there\n" {
		t.Errorf("the run says %q, %v", line, err)
	}
	s.stop(p)
	if err := s.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
	if path, err := s.LookPath("tr"); err != nil || container() == first {
		t.Errorf("the new image has %q, %v", path, err)
	}
	s.runTurn()
}
