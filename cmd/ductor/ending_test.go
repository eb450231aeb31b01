package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/app"
	"ductor/internal/sim/telegram"
)

// An ordered shutdown leaves cards unchanged while an approval waits or a tool runs: no line is marked as unfinished.
// After the start, the running answer has its Stop button again. The runner ends with ductor once nothing runs.
func TestAnOrderedEndInMidTurn(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town := surroundings(t, nil)
			town.agent, town.permission = agent, "ask"
			o := town.ordeal(31)
			o.say(
				`[[start]] [[text "Let me see."]] [[ask cmd="until [ -e go ]; do sleep 0.05; done"]] [[text "and that was it"]]`)
			asked := o.awaitButton("✅ Allow once")
			o.restartInOrder()
			o.pressOn(asked, "✅ Allow once")
			o.awaitMessage(func(m telegram.Message) bool { return m.ID == asked.ID && len(m.Keyboard) == 0 })
			o.awaitMessage(func(m telegram.Message) bool { return strings.Contains(m.Text, "⏳") && !m.Edited.IsZero() })
			o.restartInOrder()
			o.makeFile("go", nil)
			o.await("and that was it")
			o.awaitRecorded()
			if strings.Contains(fmt.Sprint(o.chat.History()), "did not end") {
				t.Errorf("a line says that what runs did not end:\n%s", o.chat.Transcript())
			}
			if len(o.runners()) == 0 {
				t.Error("no process is the runner")
			}
			_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
			o.daemon.exit(t)
			eventually(t, "the runner to end with ductor", func() bool { return len(o.runners()) == 0 })
		})
	}
}

// restartInOrder restarts ductor in order, and checks that the running answer still has its Stop button.
func (o *ordeal) restartInOrder() {
	o.t.Helper()
	_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
	if code := o.daemon.exit(o.t); code != exitOK {
		o.t.Errorf("exit code %d after SIGTERM", code)
	}
	o.rise()
	o.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "Let me see.") && m.HasButton("⏹ Stop")
	})
}

// runners returns the command lines of this town's runners.
func (town *town) runners() (all []string) {
	town.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		town.t.Fatal(err)
	}
	for _, path := range paths {
		if command, _ := os.ReadFile(path); strings.Contains(string(command), "root="+app.RunsPath(town.cfg)) {
			all = append(all, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return all
}
