package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ps, attach and kill, as somebody at the machine uses them, with ductor up and down.
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
	_, stdout, _ = runDuctor(t, "ps", "-c", o.config)
	if !strings.Contains(stdout, "goes on for 15m0s without ductor") {
		t.Errorf("ps with ductor down: %s", stdout)
	}
	id := ""
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, "claude live") { // a probe may be listed too
			id, _, _ = strings.Cut(line, " ")
		}
	}

	out := o.follow(id[:6])
	if !strings.Contains(out, "to be read along") {
		t.Errorf("attach shows %q", out)
	}
	if code, stdout, stderr := runDuctor(t, "kill", id[:6], "-c", o.config); code != exitOK || !strings.Contains(stdout, "ended "+id) {
		t.Errorf("kill: exit %d: %s%s", code, stdout, stderr)
	}
	nothingLivesIn(t, o.cfg.Projects.DefaultDir)
	if code, _, stderr := runDuctor(t, "kill", "nonsense", "-c", o.config); code == exitOK || !strings.Contains(stderr, "no run nonsense") {
		t.Errorf("an unknown run: exit %d: %s", code, stderr)
	}
	o.rise()
	o.awaitDone(1)
}

// follow gives what `ductor attach` prints in two seconds, after which it is told to go.
func (o *ordeal) follow(id string) string {
	o.t.Helper()
	ctx, stop := context.WithTimeout(o.t.Context(), 2*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, o.daemon.cmd.Path, "attach", id, "-c", o.config)
	cmd.Env = o.daemon.cmd.Env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != exitOK {
		o.t.Errorf("attach: %v", err)
	}
	return string(out)
}
