package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/app"
	"ductor/internal/runner"
	"ductor/internal/store"
)

// When a test fails, this file prints the state of its ductors: each one's log is in the test's log, and the last one
// ends with its goroutines.

// dumpGoroutines makes a running daemon print its goroutines, and ends it.
func (d *daemon) dumpGoroutines() {
	if d.cmd.Process.Signal(syscall.SIGQUIT) != nil {
		return
	}
	select {
	case <-d.done:
	case <-time.After(5 * time.Second):
	}
}

// dumpState prints the journal and the runs of a town, and the agents' last output.
func (town *town) dumpState() {
	t := town.t
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	t.Logf("the chat:\n%s", said(town.chat.View()))
	town.tellJournal(ctx)
	root, err := runner.Open(app.RunsPath(town.cfg), clitest.Runner(town.t))
	if err != nil {
		t.Logf("the runs: %v", err)
		return
	}
	defer root.Close()
	infos, err := root.List(ctx)
	t.Logf("the runs: %d, %v", len(infos), err)
	for _, info := range infos {
		t.Logf("run %s\nits last words: %q", asJSON(info), lastOutput(ctx, root, info))
	}
}

func (town *town) tellJournal(ctx context.Context) {
	t := town.t
	db, err := store.OpenReadOnly(ctx, town.database(), store.Options{})
	if err != nil {
		t.Logf("the journal: %v", err)
		return
	}
	defer db.Close()
	updates, err := db.PendingUpdates(ctx, 0, 100)
	t.Logf("updates that wait: %d, %v", len(updates), err)
	turns, err := db.OpenTurns(ctx)
	t.Logf("turns that are open: %d, %v", len(turns), err)
	for _, turn := range turns {
		content, err := db.LoadCard(ctx, string(turn.ID))
		messages, err2 := db.MessagesOf(ctx, turn.ID)
		t.Logf("turn %s\nits card: %s %+v %v", asJSON(turn), content, messages, errors.Join(err, err2))
	}
}

// awaitPrinted waits until an agent's last output contains part. No ductor may run.
func (town *town) awaitPrinted(part string) {
	t := town.t
	t.Helper()
	root, err := runner.Open(app.RunsPath(town.cfg), clitest.Runner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx := town.soon()
	eventually(t, "an agent prints "+part, func() bool {
		infos, err := root.List(ctx)
		return err == nil && slices.ContainsFunc(infos, func(i runner.Info) bool {
			return strings.Contains(lastOutput(ctx, root, i), part)
		})
	})
}

// lastOutput returns the end of an agent's output.
func lastOutput(ctx context.Context, root *runner.Client, info runner.Info) string {
	const most = 4 << 10
	run, err := root.Follow(ctx, info.ID, max(info.OutputEnd-most, 0))
	if err != nil {
		return err.Error()
	}
	defer run.Detach()
	words := make([]byte, min(most, info.OutputEnd))
	n, err := io.ReadFull(run.Stdout(), words)
	return strings.TrimSpace(string(words[:n]) + errorText(err))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	return string(raw) + errorText(err)
}

// dumpStateOnFailure runs dumpState if the test fails, after its daemons ended and before their runs are ended.
func (town *town) dumpStateOnFailure() {
	town.t.Cleanup(func() {
		if town.t.Failed() {
			town.dumpState()
		}
	})
}

// The test runs dumpState for a town with a running turn, a waiting one and a daemon.
func TestAPostMortemTellsWhatThereIsToKnow(t *testing.T) {
	told := &recordingLog{TB: t}
	town := surroundings(t, nil)
	o := town.ordeal(10)
	o.say(`[[start]] [[text "before the end"]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "started"))
	o.say("this waits")
	o.await("next in line")
	o.daemon.dumpGoroutines()
	town.t = told
	town.dumpState()
	town.t = t
	for _, want := range []string{"before the end", "this waits", `"State":"running"`, `"State":"queued"`,
		`"alive":true`, "its last words"} {
		if !strings.Contains(told.text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, told.text.String())
		}
	}
}

// recordingLog is a test that records its log.
type recordingLog struct {
	testing.TB
	text strings.Builder
}

func (l *recordingLog) Logf(format string, args ...any) { fmt.Fprintf(&l.text, format+"\n", args...) }
