package docker

import (
	"context"
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"ductor/cli/clitest"
	"ductor/docker/dockertest"
	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	clitest.RunIfAsked()
	if os.Getenv(clientVar) != "" {
		runClient()
		return
	}
	testprogram.Guard()
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // they wait for the engine, most of the time
		panic(err)
	}
	code := m.Run()
	dockertest.Clean()
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
	dockertest.Need(t)
	e, err := Connect(EngineOptions{Host: dockertest.Host()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// contextOfClient is for a client that is killed.
func contextOfClient() context.Context { return context.Background() }
