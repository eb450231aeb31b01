package docker

import (
	"cmp"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.SuperviseIfAsked()
	if os.Getenv(clientVar) != "" {
		runClient()
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // they wait for the engine, most of the time
		panic(err)
	}
	code := m.Run()
	if tools.dir != "" {
		_ = os.RemoveAll(tools.dir) // a leftover in the temporary directory
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// needEngine gives the engine of this machine, or skips a test that cannot be had without; under CI it must be had.
func needEngine(t testing.TB) *Engine {
	t.Helper()
	if os.Getenv("DUCTOR_TEST_NO_DOCKER") != "" {
		t.Skip("the tests that need an engine were not asked for")
	}
	e, err := Connect(EngineOptions{Host: machineHost()})
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = e.Check(ctx)
	}
	if err != nil {
		leaveOut(t, err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// machineHost is where this machine's engine is.
func machineHost() string { return cmp.Or(os.Getenv("DOCKER_HOST"), DefaultHost) }

// contextOfClient is for a client that is killed.
func contextOfClient() context.Context { return context.Background() }

// leaveOut skips a test that this machine cannot run. Where everything must be there it fails instead, unless the
// tests that need an engine were not asked for.
func leaveOut(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Getenv("DUCTOR_TEST_NO_DOCKER") == "" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// built are the programs that tests put into containers, made once.
type built struct {
	once sync.Once
	dir  string
	err  error
}

var tools built

func (b *built) make() {
	b.dir, b.err = os.MkdirTemp("", "ductor-docker-test-")
	for name, from := range map[string]string{"ductor-supervisor": "../cmd/ductor-supervisor", "program": "./testdata/program"} {
		if b.err != nil {
			return
		}
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(b.dir, name), from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		b.err = build.Run()
	}
}

func tool(t testing.TB, name string) string {
	t.Helper()
	tools.once.Do(tools.make)
	if tools.err != nil {
		t.Fatal(tools.err)
	}
	return filepath.Join(tools.dir, name)
}
