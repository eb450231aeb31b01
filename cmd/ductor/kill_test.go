package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
)

// daemon is ductor as a process of its own, to be killed.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// writeConfig writes the town's configuration as an owner would.
func (town *town) writeConfig() string {
	town.t.Helper()
	c := town.cfg
	text := fmt.Sprintf(`[telegram]
token = %q
api_base = %q
allowed_users = [%d]

[stream]
interval_private = "100ms"

[agents.claude]
path = %q

[agents.codex]
path = %q

[permissions]
mode = "bypass"

[projects]
roots = [%q]
default_dir = %q

[storage]
dir = %q

[log]
level = "warn"

[rate]
private_per_second = 100
private_burst = 100
overall_per_second = 1000
`, town.srv.Token(), town.srv.URL(), owner, c.Agents.Claude.Path, c.Agents.Codex.Path,
		c.Projects.DefaultDir, c.Projects.DefaultDir, c.Storage.Dir)
	path := filepath.Join(town.t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		town.t.Fatal(err)
	}
	return path
}

func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = testWriter{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(d.done) }()
	t.Cleanup(d.kill)
	return d
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// exit waits for the daemon's own end.
func (d *daemon) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-d.done:
	case <-time.After(patience):
		t.Fatal("ductor does not end")
	}
	return d.cmd.ProcessState.ExitCode()
}

// A message is run once, or shown as interrupted with a way to run it again, wherever ductor is killed:
// at a random moment, or right after any of its calls to Telegram.
func TestKilledAnywhereNothingIsLostAndNothingRunsTwice(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	work := town.cfg.Projects.DefaultDir
	random := rand.New(rand.NewPCG(1, 2))
	interrupted := 0
	const rounds = 40
	for i := range rounds {
		d := startDaemon(t, "run", "-c", config)
		if err := town.srv.AwaitPoll(town.soon()); err != nil {
			t.Fatal(err)
		}
		struck := make(chan struct{}, 1)
		if i%2 == 0 {
			town.strikeAtCall(int64(1+random.IntN(6)), struck)
		}
		runs, mark := fmt.Sprint("runs-", i), fmt.Sprintf("answer-%d.", i)
		town.say(`[[start]] [[tool cmd="echo x >> %s"]] [[text "%s" delay=5ms chunk=3]]`, runs, mark)
		select {
		case <-struck:
		case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
		}
		d.kill()
		up := town.strikeAtStart()
		d = startDaemon(t, "run", "-c", config)
		v, err := town.chat.Await(town.soon(), func(v telegram.View) bool { return answered(v, mark) || told(v) > interrupted })
		if err != nil {
			town.fatal(fmt.Errorf("round %d: neither answered nor told: %w", i, err))
		}
		interrupted = told(v)
		if b, _ := os.ReadFile(filepath.Join(work, runs)); len(b) > len("x\n") {
			t.Fatalf("round %d: ran %d times", i, strings.Count(string(b), "x"))
		}
		if err := town.srv.AwaitAcknowledged(town.soon()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-up: // the answer may have been there before, and a program that has just begun dies of a signal
		case <-time.After(patience):
			t.Fatalf("round %d: ductor does not start again", i)
		}
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		if code := d.exit(t); code != exitOK {
			t.Errorf("round %d: exit code %d after SIGTERM", i, code)
		}
		nothingLivesIn(t, work)
	}
	t.Logf("%d of %d rounds were interrupted", interrupted, rounds)
	for i := range rounds {
		if n := town.countShown(fmt.Sprintf("answer-%d.", i)); n > 1 {
			t.Errorf("answer %d is shown %d times", i, n)
		}
	}
}

// A tool in a session of its own outlives ductor and its agent: the next start ends it, and the chat is told.
func TestWhatOutlivesAKilledDuctorIsEndedAtTheNextStart(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	work, prompts := town.cfg.Projects.DefaultDir, filepath.Join(town.cfg.Storage.Dir, promptsDir)
	town.giveRole(config)
	d := startDaemon(t, "run", "-c", config)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	town.say(`[[start]] [[tool cmd="setsid sh -c 'trap \"\" TERM; touch started; sleep 600; sleep 600' & sleep 600"]] [[text "over"]]`)
	awaitFile(t, filepath.Join(work, "started"))
	d.kill()
	if len(livingIn(t, work)) == 0 {
		t.Fatal("nothing outlived the kill: the test proves nothing")
	}
	left, err := filepath.Glob(filepath.Join(prompts, "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the agent was given %q, %v", left, err)
	}
	d = startDaemon(t, "run", "-c", config)
	if _, err := town.chat.Await(town.soon(), func(v telegram.View) bool { return told(v) == 1 }); err != nil {
		town.fatal(err)
	}
	if left := livingIn(t, work); len(left) > 0 {
		t.Errorf("the chat is told, but these run on: %q", left)
	}
	if _, err := os.Stat(left[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the agent was told is still there: %v", err)
	}
	town.say(`[[text "and on it goes"]]`)
	town.await("and on it goes")
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if code := d.exit(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	nothingLivesIn(t, work)
}

// giveRole makes every conversation begin with a role.
func (town *town) giveRole(config string) {
	town.t.Helper()
	f, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		town.t.Fatal(err)
	}
	_, err = f.WriteString("\n[sessions]\ndefault_role = \"terse\"\n\n[roles.terse]\nprompt = \"Few words.\"\n")
	if err := errors.Join(err, f.Close()); err != nil {
		town.t.Fatal(err)
	}
}

// strikeAtStart closes its channel when a ductor makes the first call of its life that is not a poll.
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

// strikeAtCall strikes when the bot has made n more calls that show something.
func (town *town) strikeAtCall(n int64, struck chan<- struct{}) {
	var made atomic.Int64
	town.srv.OnCall(func(c telegram.Call) {
		if c.Method != "getUpdates" && made.Add(1) == n {
			struck <- struct{}{}
		}
	})
}

func answered(v telegram.View, mark string) bool {
	for _, m := range ended(v) {
		if strings.Contains(m.Text, mark) {
			return true
		}
	}
	return false
}

// told counts the turns that are shown as interrupted.
func told(v telegram.View) (n int) {
	for _, m := range v.FromBot() {
		if m.HasButton("🔁 Run again") {
			n++
		}
	}
	return n
}

func (town *town) countShown(mark string) (n int) {
	for _, m := range ended(town.chat.View()) {
		n += strings.Count(m.Text, mark)
	}
	return n
}
