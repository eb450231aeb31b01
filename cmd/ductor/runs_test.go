package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/runner"
)

// A user at the machine runs ps, ps --output and kill while ductor is up and while it is down.
func TestRunsAreListedFollowedAndEndedAlsoWithoutDuctor(t *testing.T) {
	o := surroundings(t, nil).ordeal(1)
	o.say(`[[start]] [[text "to be read along"]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "started"))

	code, stdout, _ := runDuctor(t, "ps", "-c", o.config)
	for _, want := range []string{"claude live", "1/0", "attached by ductor", " MB"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("ps lacks %q: exit %d: %s", want, code, stdout)
		}
	}
	o.daemon.kill()
	eventually(t, "ps with ductor down", func() bool { // the runner learns of it a moment later
		_, stdout, _ = runDuctor(t, "ps", "-c", o.config)
		return strings.Contains(stdout, "continues for 15m0s without ductor")
	})
	id := ""
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, "claude live") { // a probe may be listed too
			id, _, _ = strings.Cut(line, " ")
		}
	}

	o.follow(id[:6], "to be read along")
	if code, stdout, stderr := runDuctor(t, "kill", id[:6], "-c", withMistake(t, o.config)); code != exitOK ||
		!strings.Contains(stdout, "ended "+id) || !strings.Contains(stderr, "there is no such") {
		t.Errorf("kill: exit %d: %s%s", code, stdout, stderr)
	}
	checkNoProcessIn(t, o.cfg.Projects.DefaultDir)
	if code, _, stderr := runDuctor(t, "kill", "nonsense", "-c", o.config); code == exitOK ||
		!strings.Contains(stderr, "there is no agent with the ID nonsense") {
		t.Errorf("an unknown run: exit %d: %s", code, stderr)
	}
	o.rise()
	o.awaitDone(1)
	if shown := o.chat.Transcript(); !strings.Contains(shown, "Claude was stopped with ductor kill.") {
		t.Errorf("the chat does not say who ended the agent:\n%s", shown)
	}
}

// withMistake returns the path of a copy of a configuration that also contains an unknown key.
func withMistake(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, append(text, "\n[nothing]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// follow runs `ductor ps --output` until it has printed part, and then interrupts it.
func (o *ordeal) follow(id, part string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.soon(), o.daemon.cmd.Path, "ps", "--output", id, "-c", o.config)
	cmd.Env = o.daemon.cmd.Env
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	var shown strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(shown.String(), part); {
		n, err := out.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			o.t.Errorf("it shows %q, %v", shown.String(), err)
			break
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		o.t.Errorf("ps --output: %v", err)
	}
}

// TestAttackTheTerminalByAContainer tests that the ID, the command and the state of a run, which a container can change,
// add no row and no control characters to the table.
func TestAttackTheTerminalByAContainer(t *testing.T) {
	const evil = "\x1b]52;c;eA==\x07\u009b2J\nforged\t"
	var out strings.Builder
	status := &runner.Status{Exit: runner.Exit{Known: true, By: evil}}
	for _, i := range []runner.Info{{Problem: evil}, {Status: status}} {
		i.ID, i.Command = evil, []string{evil}
		out.Reset()
		if err := writeRuns(&out, []listedRun{{Info: i}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); strings.Count(s, "\n") != 2 || strings.ContainsAny(s, "\x1b\x07\u009b\t") {
			t.Errorf("ps prints %q", s)
		}
	}
	a := startAtTerminal(t, "ps", "-c", "/nowhere"+evil)
	if code := a.exit(); code == exitOK || !strings.Contains(a.text(), "forged") ||
		strings.ContainsAny(a.text(), "\x1b\x07\u009b") {
		t.Errorf("exit %d: the terminal got %q", code, a.text())
	}
}
