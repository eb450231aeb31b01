package docker

import (
	"testing"

	"ductor/cli/clitest"
	"ductor/cli/host"
)

func TestLauncherConformance(t *testing.T) {
	t.Parallel()
	t.Run("host", func(t *testing.T) {
		dir := t.TempDir()
		clitest.LauncherConformance(t, clitest.LauncherHarness{
			Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"},
			Open: func(t *testing.T) clitest.ClosingLauncher {
				h, err := host.Open(host.Options{Dir: dir, Runner: clitest.Runner(t)})
				if err != nil {
					t.Fatal(err)
				}
				return h
			},
		})
	})
	t.Run("container", func(t *testing.T) {
		o := testOptions(t, needEngine(t))
		clitest.LauncherConformance(t, clitest.LauncherHarness{
			Dir: o.Projects[0],
			Open: func(t *testing.T) clitest.ClosingLauncher {
				l, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				return l
			},
		})
	})
}
