package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/sim/telegram"
)

// daemon is ductor in a separate process, which tests can kill.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// writeConfig writes the town's configuration as an owner would.
func (town *town) writeConfig() string {
	town.t.Helper()
	town.t.Cleanup(town.endRuns) // agents outlive a daemon
	c := town.cfg
	text := fmt.Sprintf(`[telegram]
token = %q
api_base = %q
allowed_users = [%d]

[stream]
interval_private = "100ms"
display = "plain"

[agents]
default = %q
%s

[agents.claude]
path = %q

[agents.codex]
path = %q
mode = %q

[agents.gemini]
path = %q

[agents.copilot]
path = %q

[permissions]
mode = %q

[projects]
roots = [%q]
default_dir = %q

[storage]
dir = %q

[log]
level = "debug"

[rate]
private_per_second = 100
private_burst = 100
overall_per_second = 1000
`, town.srv.Token(), town.srv.URL(), owner, cmp.Or(town.agent, "claude"), town.extra, c.Agents.Claude.Path,
		c.Agents.Codex.Path, cmp.Or(town.mode, "live"), c.Agents.Gemini.Path, c.Agents.Copilot.Path,
		cmp.Or(town.permission, "bypass"),
		c.Projects.DefaultDir, c.Projects.DefaultDir, c.Storage.Dir)
	dir := town.t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		town.t.Fatal(err)
	}
	return path
}

func startDaemon(t testing.TB, args ...string) *daemon {
	t.Helper()
	return startDaemonIn(t, "", nil, args...)
}

// startDaemonIn is startDaemon with a working directory and additional variables.
func startDaemonIn(t testing.TB, dir string, env []string, args ...string) *daemon {
	t.Helper()
	cmd := exec.Command(clitest.Program(t), args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	return watchDaemon(t, cmd, (*exec.Cmd).Start)
}

// watchDaemon starts a ductor with start, and ends it with the test.
func watchDaemon(t testing.TB, cmd *exec.Cmd, start func(*exec.Cmd) error) *daemon {
	t.Helper()
	cmd.Stderr = testWriter{t}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(d.done) }()
	t.Cleanup(func() {
		if t.Failed() {
			d.dumpGoroutines()
		}
		d.kill()
	})
	return d
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// exit waits until the daemon ends on its own.
func (d *daemon) exit(t testing.TB) int {
	t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		t.Fatal("ductor does not end")
	}
	return d.cmd.ProcessState.ExitCode()
}

// strikeAtStart closes its channel at the first call of a new ductor that is not a poll.
func (town *town) strikeAtStart() <-chan struct{} {
	up := make(chan struct{})
	var once sync.Once
	town.srv.OnCall(func(c telegram.Call) {
		if c.Method == "getWebhookInfo" {
			once.Do(func() { close(up) })
		}
	})
	return up
}

// strikeAtCall sends to struck after n more calls of the bot that show something.
func (town *town) strikeAtCall(n int64, struck chan<- struct{}) {
	var made atomic.Int64
	town.srv.OnCall(func(c telegram.Call) {
		if c.Method != "getUpdates" && made.Add(1) == n {
			struck <- struct{}{}
		}
	})
}

// appendTo adds lines to a configuration.
func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
