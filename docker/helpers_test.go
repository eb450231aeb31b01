package docker

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/docker/dockertest"
)

// localImage returns an image that is built without network access.
func localImage(t testing.TB) *Build {
	t.Helper()
	return &Build{Dir: dockertest.ImageDir(t), Network: NetworkNone}
}

var imageThere struct {
	once sync.Once
	err  error
}

// machineImage returns the name of that image in the machine's engine, where it is built once.
func machineImage(t testing.TB, e *Engine) string {
	t.Helper()
	b := localImage(t)
	tag, err := b.tag()
	if err != nil {
		t.Fatal(err)
	}
	imageThere.once.Do(func() {
		_, imageThere.err = e.base(t.Context(), Options{Build: b, Owner: "test"}, tag)
	})
	if imageThere.err != nil {
		t.Fatal(imageThere.err)
	}
	return tag
}

// testOptions returns the options of a separate sandbox, which is removed after the test.
func testOptions(t testing.TB, e *Engine) Options {
	t.Helper()
	project := t.TempDir()
	if err := os.Chmod(project, 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Engine: e, Owner: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], Name: t.Name(), Dir: t.TempDir(),
		Projects:          []string{project},
		ContainerSettings: ContainerSettings{Runner: dockertest.Tool(t, dockertest.Runner), Network: NetworkNone},
		Timing:            cli.Timing{Grace: time.Second, OrphanAfter: time.Minute},
	}
	if e.host == dockertest.Host() {
		o.Image = machineImage(t, e)
	} else {
		o.Build = localImage(t)
	}
	t.Cleanup(func() { wipe(t, e, o) })
	return o
}

// wipe removes everything of an owner.
func wipe(t testing.TB, e *Engine, o Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := e.Clean(ctx, o.Owner, nil); err != nil {
		t.Error(err)
	}
	homes, err := e.Homes(ctx, o.Owner, "")
	if err != nil {
		t.Error(err)
	}
	for _, home := range homes {
		if err := e.Forget(ctx, o.Owner, home.Name); err != nil {
			t.Error(err)
		}
	}
}

// open returns a launcher that the test closes at its end.
func open(t testing.TB, o Options) *Launcher {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// write creates a file with exactly this mode.
func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
