package docker

import (
	"context"
	"flag"
	"os"
	"testing"

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
	if err := flag.Set("test.parallel", "6"); err != nil { // most of the time they wait for the engine
		panic(err)
	}
	code := m.Run()
	dockertest.Clean()
	if code == 0 {
		if err := testprogram.FindLeaks(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// needEngine returns the machine's engine. Without one it skips the test; under CI it fails.
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

// contextOfClient is the context of a client that gets killed.
func contextOfClient() context.Context { return context.Background() }
