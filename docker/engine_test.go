package docker

import (
	"testing"

	"ductor/docker/dockertest"
)

// ownEngine is a separate engine, which a test may stop without affecting others.
type ownEngine struct {
	*dockertest.Engine
	t testing.TB
}

func startEngine(t testing.TB, args ...string) *ownEngine {
	t.Helper()
	return &ownEngine{dockertest.Start(t, dockertest.Options{Args: args}), t}
}

func (e *ownEngine) connect() *Engine {
	e.t.Helper()
	return connectTo(e.t, EngineOptions{Host: e.Host()})
}
