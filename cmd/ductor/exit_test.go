package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/sim/telegram"
)

// runDuctor runs ductor to its end and returns its exit code and output.
func runDuctor(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runDuctorIn(t, "", args...)
}

// runDuctorIn is runDuctor with a working directory.
func runDuctorIn(t testing.TB, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit code is checked instead
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

func TestAMistypedKeyIsNamedWithItsLineAndExits2(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte("interval_private"), []byte("intervall_private"), 1),
		0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDuctor(t, "run", "-c", path)
	if code != exitConfig || !strings.Contains(stderr, "config.toml:7:") ||
		!strings.Contains(stderr, "intervall_private") ||
		!strings.Contains(stderr, "interval_private") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := runDuctor(t, "run", "-c", filepath.Join(t.TempDir(), "none.toml")); code != exitConfig ||
		!strings.Contains(stderr, "ductor setup") {
		t.Errorf("no file: exit %d: %s", code, stderr)
	}
}

func TestAWrongTokenIsOneLineAndExits3WithoutAStorm(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	b, _ := os.ReadFile(path)
	const wrong = "999999:AAwrong-wrong-wrong-wrong-wrong-wrong"
	if err := os.WriteFile(path, bytes.Replace(b, []byte(town.srv.Token()), []byte(wrong), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDuctor(t, "run", "-c", path)
	if code != exitToken || !strings.Contains(stderr, "@BotFather") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if strings.Contains(stderr, "wrong-wrong") {
		t.Errorf("the token is in the output: %s", stderr)
	}
	if calls := town.srv.Calls(); len(calls) > 2 {
		t.Errorf("%d calls with a wrong token", len(calls))
	}
}

func TestTwoInstancesOfOneTokenTheSecondExits4(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	first := startDaemon(t, "run", "-c", config)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runDuctor(t, "run", "-c", config)
	if code != exitInstance || !strings.Contains(stderr, "another ductor") || !strings.Contains(stderr, "stop it") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(other, bytes.Replace(b, []byte(town.srv.Token()),
		[]byte("777777:AAanother-bot-with-a-token-of-its-own"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = runDuctor(t, "run", "-c", other)
	if code != exitInstance || !strings.Contains(stderr, "storage.dir") {
		t.Errorf("the same storage: exit %d: %s", code, stderr)
	}
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	if code := first.exit(t); code != exitOK {
		t.Errorf("the first one exits with %d", code)
	}
}

func TestASecondSignalEndsAtOnceAndAgentsGoOn(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	d := startDaemon(t, "run", "-c", config)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	town.srv.Inject(telegram.Fault{Method: "editMessageText", Kind: telegram.Hang, Times: telegram.Always})
	town.say(`[[text "a text to be edited in" delay=50ms chunk=2]] [[tool cmd="touch running; sleep 600"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "running"))
	ended := false
	for ctx := town.soon(); !ended && ctx.Err() == nil; { // ductor misses a signal that comes too soon
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.done:
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	if code := d.exit(t); code != exitFailure { // an ordered end exits with 0
		t.Errorf("it exits with %d", code)
	}
	if len(livingIn(t, town.cfg.Projects.DefaultDir)) == 0 {
		t.Error("the agent was ended with ductor")
	}
	code, stdout, stderr := runDuctor(t, "kill", "--all", "-c", config)
	if code != exitOK || !strings.Contains(stdout, "ended") {
		t.Errorf("kill --all: exit %d: %s%s", code, stdout, stderr)
	}
	checkNoProcessIn(t, town.cfg.Projects.DefaultDir)
}

func TestDoctorSaysWhatIsThereAndWhatIsMissing(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	code, stdout, _ := runDuctor(t, "doctor", "-c", config)
	if code != exitOK || !strings.Contains(stdout, "ok   Telegram: serves @ductor_bot") ||
		!strings.Contains(stdout, "agent claude") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	town.srv.Inject(telegram.Fault{Method: "getMe", Kind: telegram.ServerError, Times: telegram.Always})
	if code, stdout, _ := runDuctor(t, "doctor", "-c", config); code != exitFailure ||
		!strings.Contains(stdout, "FAIL Telegram") {
		t.Errorf("with Telegram down: exit %d: %s", code, stdout)
	}
}

func TestAMistypedSubcommandFails(t *testing.T) {
	for _, group := range []string{"secret", "service", "terminal", "users"} {
		if code, _, stderr := runDuctor(t, group, "lisst"); code != exitFailure ||
			!strings.Contains(stderr, "ductor "+group+` has no command "lisst"`) {
			t.Errorf("%s: exit %d: %s", group, code, stderr)
		}
		if code, stdout, _ := runDuctor(t, group); code != exitOK || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%s alone: exit %d: %s", group, code, stdout)
		}
	}
}

func TestACommandSaysWhatItTakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"restore"}, "usage: ductor restore FILE"},
		{[]string{"secret", "set"}, "usage: ductor secret set NAME"},
		{[]string{"users", "role", "7"}, "usage: ductor users role ID ROLE"},
		{[]string{"audit", "--since", "-1h"}, "--since and --limit must be above zero"},
		{[]string{"audit", "-n", "0"}, "--since and --limit must be above zero"},
	} {
		if code, _, stderr := runDuctor(t, c.args...); code != exitFailure || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit %d: %s", c.args, code, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := runDuctor(t, "version"); code != exitOK || !strings.HasPrefix(stdout, "ductor ") {
		t.Errorf("exit %d: %q", code, stdout)
	}
}

func TestNoSecretIsInTheLogOrInTheDatabase(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	d := startDaemon(t, "run", "-c", config)
	town.say("my token is %s [[text \"it is %s\"]]", town.srv.Token(), town.srv.Token())
	m := town.awaitDone(1)
	if strings.Contains(m.Text, town.srv.Token()) {
		t.Errorf("the token went out: %q", m.Text)
	}
	town.srv.Inject(telegram.Fault{Method: "sendMessage", Kind: telegram.TooMany, RetryAfter: 1})
	town.say("/status")
	town.await("Folder")
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	d.exit(t)
	for _, name := range []string{app.DatabaseFile, environment.UploadsDir} {
		info, err := os.Stat(filepath.Join(town.cfg.Storage.Dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestToldToStopWhileStartingIsNoFailure(t *testing.T) {
	for _, call := range []string{"", "getMe", "getWebhookInfo", "setMyCommands"} {
		town := surroundings(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if call == "" {
			cancel()
		}
		town.srv.OnCall(func(c telegram.Call) {
			if c.Method == call {
				cancel()
			}
		})
		if err := serve(ctx, town.cfg, nil, testWriter{t}); err != nil {
			t.Errorf("stopped at %q: %v", call, err)
		}
	}
}
