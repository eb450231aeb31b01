package dockertest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Host returns the address of the machine's engine.
func Host() string { return cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock") }

// Need skips the test if the machine's engine is not available. In CI the test fails instead, unless
// DUCTOR_TEST_NO_DOCKER is set.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("DUCTOR_TEST_NO_DOCKER") != "" {
		t.Skip("the tests that need an engine were not asked for")
	}
	if out, err := answers(Host()); err != nil {
		LeaveOut(t, "the machine's Docker Engine: ", err, " ", out)
	}
}

// LeaveOut skips the test because this machine cannot run it. In CI the test fails instead, unless
// DUCTOR_TEST_NO_DOCKER is set.
func LeaveOut(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Getenv("DUCTOR_TEST_NO_DOCKER") == "" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

func answers(host string) (string, error) {
	return runDocker(host, "version", "--format", "{{.Server.Version}}")
}

// askTimeout limits how long the docker program may take, so that an engine that hangs does not block a test.
const askTimeout = time.Minute

func runDocker(host string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", append([]string{"--host", host}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Docker runs the docker program against the machine's engine and returns its output.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	return On(t, Host(), args...)
}

// On runs the docker program against the engine at host and returns its output.
func On(t testing.TB, host string, args ...string) string {
	t.Helper()
	out, err := runDocker(host, args...)
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return out
}

// Eventually calls ok until it returns true. It fails the test after a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := 10 * time.Millisecond
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(pause) {
		pause = min(2*pause, 200*time.Millisecond) // poll less often: many tests poll at once, and calls of ok are slow
		if time.Now().After(until) {
			t.Fatalf("%s: not in a minute", what)
		}
	}
}

// Pause pauses a container. Some engines hang forever if a program is starting in the container at that moment, so
// Pause first waits until nothing changes in it. If the engine cannot freeze a busy container, Pause tries again.
func Pause(t testing.TB, host, container string) {
	t.Helper()
	settle(t, host, container)
	Eventually(t, "the container is paused", func() bool {
		out, err := runDocker(host, "pause", container)
		if err != nil && !strings.Contains(out, "unable to freeze") {
			t.Fatalf("pause %s: %v: %s", container, err, out)
		}
		return err == nil
	})
}

// settle waits until the list of processes in a container has not changed for half a second.
func settle(t testing.TB, host, container string) {
	t.Helper()
	before, same := "", 0
	Eventually(t, "nothing is started in the container", func() bool {
		time.Sleep(100 * time.Millisecond)
		now := On(t, host, "top", container, "-eo", "pid,args")
		if now != before {
			before, same = now, 0
		}
		same++
		return same > 5
	})
}
