package agent_test

import (
	"os"
	"testing"

	"ductor/internal/sim/agent"
)

func TestMain(m *testing.M) {
	agent.RunIfChild()
	os.Exit(m.Run())
}
