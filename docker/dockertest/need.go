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

// Host is where the machine's engine is.
func Host() string { return cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock") }

// Need skips a test that cannot be had without the machine's engine; under CI it must be there, unless the tests
// that need one were not asked for.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("DUCTOR_TEST_NO_DOCKER") != "" {
		t.Skip("the tests that need an engine were not asked for")
	}
	if out, err := answers(Host()); err != nil {
		LeaveOut(t, "the machine's Docker Engine: ", err, " ", out)
	}
}

// LeaveOut skips a test that this machine cannot run. Where everything must be there it fails instead, unless the
// tests that need an engine were not asked for.
func LeaveOut(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Getenv("DUCTOR_TEST_NO_DOCKER") == "" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

func answers(host string) (string, error) {
	return ask(host, "version", "--format", "{{.Server.Version}}")
}

// answerWait is how long docker's own program may take: an engine that hangs must not hang a test.
const answerWait = time.Minute

func ask(host string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", append([]string{"--host", host}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Docker runs docker's own program against the machine's engine and gives what it printed.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	return On(t, Host(), args...)
}

// On runs docker's own program against the engine at host and gives what it printed.
func On(t testing.TB, host string, args ...string) string {
	t.Helper()
	out, err := ask(host, args...)
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return out
}

// Eventually waits until ok, 30 seconds at most.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pause := 10 * time.Millisecond
	for until := time.Now().Add(30 * time.Second); !ok(); time.Sleep(pause) {
		pause = min(2*pause, 200*time.Millisecond) // what is asked for is dear, and many ask
		if time.Now().After(until) {
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}

// Pause pauses a container. An engine may hang for ever when it does that while something is started there, such as a
// bridge to spare; and it may find itself unable to freeze what is busy, and say so.
func Pause(t testing.TB, host, container string) {
	t.Helper()
	settle(t, host, container)
	Eventually(t, "the container is paused", func() bool {
		out, err := ask(host, "pause", container)
		if err != nil && !strings.Contains(out, "unable to freeze") {
			t.Fatalf("pause %s: %v: %s", container, err, out)
		}
		return err == nil
	})
}

// settle waits until the processes of a container are the same for half a second.
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
