package docker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/docker/dockertest"
)

// Status creates nothing, and reports the needs and the state of a sandbox.
func TestStatus(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	o := testOptions(t, e)
	s := newSandbox(t, o)
	is := func(image, state State) {
		t.Helper()
		got, err := s.Status(t.Context())
		if err != nil || got.ImageIs != image || got.Is != state || got.Version == "" || got.OS != "linux" ||
			got.Arch == "" || got.Image == "" {
			t.Errorf("the status is %+v, %v", got, err)
		}
	}
	is(StateThere, StateNone)
	s.runTurn()
	is(StateThere, StateRunning)
	dockertest.Pause(t, dockertest.Host(), o.containerName())
	is(StateThere, StatePaused)
	dockertest.Docker(t, "unpause", o.containerName())
	dockertest.Docker(t, "kill", o.containerName())
	is(StateThere, StateStopped)
	for _, c := range []struct {
		name   string
		change func(*Options)
		image  State
	}{
		{"to fetch", func(o *Options) { o.Image, o.Pull = "no-such-image:1", true }, StateToFetch},
		{"to build", func(o *Options) { o.Image, o.Build = "", &Build{Args: map[string]string{"NOBODY": "ever"}} },
			StateToBuild},
	} {
		o := o
		c.change(&o)
		s = newSandbox(t, o)
		is(c.image, StateStopped)
	}
	for _, c := range []struct {
		change func(*Options)
		word   string
	}{
		{func(o *Options) { o.Image = "no-such-image:1" }, "docker pull"},
		{func(o *Options) { o.Runner = "/no/such/file" }, "CGO_ENABLED=0 go build"},
		{func(o *Options) { o.Runner = foreignProgram(t, o.Runner) }, "ductor-runner is for arm64"},
		{func(o *Options) { o.Engine = engineAt(t, "unix:///no/such/socket") }, "cannot be reached"},
	} {
		o := o
		c.change(&o)
		_, err := newSandbox(t, o).Status(t.Context())
		s.expectFailure(err, c.word)
	}
}

// foreignProgram is a program for another architecture, according to its header.
func foreignProgram(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[18], raw[19] = 183, 0 // e_machine: EM_AARCH64
	foreign := filepath.Join(t.TempDir(), "foreign")
	dockertest.Write(t, foreign, string(raw), 0o755)
	return foreign
}

// Images made by ductor that no sandbox needs any more are removed; needed ones, used ones and those of other owners
// stay.
func TestOldImagesGo(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	o := testOptions(t, e)
	o.Image, o.Build = "", &Build{Dir: t.TempDir(), Network: NetworkNone}
	dockerfileOf := func(text string) {
		dockertest.Write(t, filepath.Join(o.Build.Dir, "Dockerfile"),
			"FROM "+machineImage(t, e)+"\nENV OLD="+text+o.Owner+"\n", 0o644)
	}
	dockerfileOf("one")
	other := o
	one := newSandbox(t, o)
	one.runTurn()
	first := one.images()
	dockerfileOf("another")
	o.Dir = t.TempDir()
	o.Name = "second"
	second := newSandbox(t, o)
	second.runTurn()
	wanted := second.images()
	cleaned := func(keep []string, want int) {
		t.Helper()
		if n, err := e.CleanImages(t.Context(), o.Owner, keep); n != want || err != nil {
			t.Errorf("%d images were removed, %v, want %d", n, err, want)
		}
	}
	cleaned(nil, 0) // a container of each exists
	if _, err := e.Clean(t.Context(), o.Owner, func(name string) bool { return name == "second" }); err != nil {
		t.Error(err)
	}
	other.Owner = o.Owner + "x" // another ductor uses the first image
	other.Image, other.Build = first[0], nil
	t.Cleanup(func() { wipe(t, e, other) })
	newSandbox(t, other).runTurn()
	cleaned(wanted, 0)
	if _, err := e.Clean(t.Context(), other.Owner, nil); err != nil {
		t.Error(err)
	}
	if old, err := e.oldImages(t.Context(), o.Owner, wanted); err != nil || len(old) != 2 {
		t.Errorf("old are %+v, %v", old, err)
	}
	cleaned(wanted, 2)
	second.runTurn()
	if again := second.images(); !slices.Equal(again, wanted) {
		t.Errorf("then it wants %v, before %v", again, wanted)
	}
	if _, err := e.Clean(t.Context(), o.Owner, nil); err != nil {
		t.Error(err)
	}
	cleaned(nil, 2)
}

func (s *sandbox) images() []string {
	s.Helper()
	all, err := s.Images(s.Context())
	if err != nil || len(all) != 2 || !strings.HasPrefix(all[0], builtImages) ||
		!strings.HasPrefix(all[1], fittedImages) {
		s.Fatalf("it wants %v, %v", all, err)
	}
	return all
}

// Homes lists the homes of an engine with their last use.
func TestHomesAreListed(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	o := testOptions(t, e)
	newSandbox(t, o).runTurn()
	homes, err := e.Homes(t.Context(), o.Owner, o.Dir)
	if err != nil || len(homes) != 1 || homes[0].Name != o.Name || time.Since(homes[0].Used).Abs() > time.Hour {
		t.Fatalf("the homes are %+v, %v", homes, err)
	}
	later := time.Now().Add(time.Hour)
	book, err := openNotebook(o.Dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := book.recordUse(later); err != nil {
		t.Error(err)
	}
	if homes, err = e.Homes(t.Context(), o.Owner, o.Dir); err != nil || !homes[0].Used.Equal(later) {
		t.Errorf("used in an hour: %+v, %v", homes, err)
	}
}
