package runner

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loggedLifecycle returns a lifecycle with a log, and a function that reads this log.
func loggedLifecycle(t *testing.T, limits Limits, owner *conn) (*lifecycle, func() history) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return newLifecycle(runLog{f}, limits, owner), func() history {
		h, err := readHistory(filepath.Dir(dir), filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
}

func TestDeadlines(t *testing.T) {
	const hour, minute, second = time.Hour, time.Minute, time.Second
	limits := Limits{MaxAge: hour, OrphanAfter: minute, LeftoverAfter: second, Grace: 5}
	d := deadlines{limits: limits, ageFrom: 10 * hour, idleFrom: 10 * hour, exitedAt: 11 * hour}
	retrying := d
	retrying.retryAt = 12 * hour
	endless := d
	endless.limits.MaxAge = -1
	for name, tc := range map[string]struct {
		deadlines deadlines
		now       time.Duration
		phase     phase
		owned     bool
		want      action
	}{
		"too old":         {d, 11 * hour, running, true, action{end: ByMaxAge, at: 11 * hour}},
		"nearly too old":  {d, 11*hour - 1, running, true, action{at: 11 * hour}},
		"may live longer": {endless, 99 * hour, running, true, action{at: 99*hour + checkEvery}},
		"orphaned":        {d, 10*hour + minute, running, false, action{end: ByOrphaned, at: 10*hour + minute}},
		"soon orphaned":   {d, 10*hour + minute - 1, running, false, action{at: 10*hour + minute}},
		"owned":           {d, 10*hour + minute, running, true, action{at: 10*hour + minute + checkEvery}},
		"writes the rest": {d, 12 * hour, exited, false, action{at: 12*hour + checkEvery}},
		"leftovers":       {d, 11*hour + second, ended, false, action{sweep: true, at: 11*hour + second}},
		"owned leftovers": {d, 11*hour + second, ended, true, action{at: 11*hour + second + checkEvery}},
		"gone":            {d, 12 * hour, gone, false, action{at: 12*hour + checkEvery}},
		"after a failure": {retrying, 12*hour - 1, running, true, action{at: 12 * hour}},
		"second attempt":  {retrying, 12 * hour, running, true, action{end: ByMaxAge, at: 12 * hour}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.grace = limits.Grace
			if got := tc.deadlines.next(tc.now, tc.phase, tc.owned); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// After a failed attempt to end an agent, the runner waits before the next attempt.
func TestAnActionIsRepeatedLater(t *testing.T) {
	l, _ := loggedLifecycle(t, Limits{MaxAge: time.Hour}, nil)
	now := l.deadlines.ageFrom + time.Hour
	for _, tc := range []struct {
		at  time.Duration
		end string
	}{{now, ByMaxAge}, {now + 1, ""}, {now + retryEnd, ByMaxAge}} {
		if got := l.nextAction(tc.at); got.end != tc.end {
			t.Errorf("after %s: %+v, want %q", tc.at-now, got, tc.end)
		}
	}
}

func TestTheFirstReasonForAnEndCounts(t *testing.T) {
	l, logged := loggedLifecycle(t, Limits{}, nil)
	l.beginEnd(ByMaxAge)
	l.beginEnd(ByStop)
	l.exit(Exit{Code: -int(syscall.SIGKILL), Signal: true, OOM: true})
	l.beginEnd(ByOrphaned) // ends only the remaining processes
	if got := l.currentStatus().Exit; got.By != ByMaxAge || got.OOM {
		t.Errorf("%+v: the runner itself ended the agent, because of its age", got)
	}
	if got := logged().by; got != ByMaxAge {
		t.Errorf("the log contains %q", got)
	}
}

func TestOnlyTheOwnerGivesUpARun(t *testing.T) {
	owner, other := &conn{pid: 1}, &conn{pid: 2}
	l, _ := loggedLifecycle(t, Limits{}, owner)
	if l.setOwner(other, nil) || !l.isOwnedBy(owner) {
		t.Error("a client that does not own the run gave it up")
	}
	if !l.setOwner(nil, other) || !l.isOwnedBy(other) {
		t.Error("a new client did not become the owner")
	}
	if l.setOwner(owner, nil) || !l.isOwnedBy(other) {
		t.Error("the previous owner gave up the run")
	}
	if !l.setOwner(other, nil) || l.isOwnedBy(other) {
		t.Error("the owner did not give up the run")
	}
}

func TestTheAgentIsPausedAndResumed(t *testing.T) {
	owner := &conn{}
	l, _ := loggedLifecycle(t, Limits{}, owner)
	var got []syscall.Signal
	update := func(what string, lag int64, want ...syscall.Signal) {
		t.Helper()
		got = nil
		l.updateFlow(lag, func(sig syscall.Signal) { got = append(got, sig) })
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	update("a small lag", pauseLag)
	update("a large lag", pauseLag+1, unix.SIGSTOP)
	update("a smaller lag", resumeLag)
	update("a small lag of a paused agent", resumeLag-1, unix.SIGCONT)
	update("a large lag again", pauseLag+1, unix.SIGSTOP)
	l.setOwner(owner, nil)
	update("no owner", pauseLag+1, unix.SIGCONT)
	l.setOwner(nil, owner)
	l.beginEnd(ByStop)
	update("an agent that must end", pauseLag+1)
}

// The next runner does not resume a paused agent at once, because its client may return.
func TestAPausedAgentOfAPreviousRunner(t *testing.T) {
	l, _ := loggedLifecycle(t, Limits{}, nil)
	l.restore(history{}, time.Hour, true)
	if got := l.nextFlow(pauseLag + 1); got != perhapsPaused {
		t.Errorf("without a client: %v", got)
	}
	l.deadlines.idleFrom -= reattachWithin
	if got := l.nextFlow(pauseLag + 1); got != flowing {
		t.Errorf("without a client for some time: %v", got)
	}
	l.setOwner(nil, &conn{})
	if got := l.nextFlow(pauseLag); got != flowing {
		t.Errorf("with a client: %v", got)
	}
	if got := l.nextFlow(pauseLag + 1); got != paused {
		t.Errorf("with a client that has much to read: %v", got)
	}
}

// The next runner continues with the limits, the reason and the status in the log.
func TestTheLogContinuesALifecycle(t *testing.T) {
	first, logged := loggedLifecycle(t, Limits{MaxAge: time.Hour}, nil)
	first.setLimits(Limits{MaxAge: time.Minute})
	first.beginEnd(ByMaxAge)
	running := newLifecycle(runLog{}, Limits{MaxAge: time.Hour}, nil)
	running.restore(logged(), time.Hour, true)
	if d := running.deadlines; d.limits != (Limits{MaxAge: time.Minute}) || d.ageFrom != first.deadlines.ageFrom {
		t.Errorf("limits: %+v", d)
	}
	if running.by != ByMaxAge || running.currentPhase() != 0 {
		t.Errorf("ended by %q in phase %d", running.by, running.currentPhase())
	}
	first.exit(Exit{Known: true, Code: 3})
	first.endOutput(99)
	over := newLifecycle(runLog{}, Limits{}, nil)
	over.restore(logged(), time.Hour, false)
	got := over.currentStatus()
	if got.Exit != (Exit{Known: true, Code: 3, By: ByMaxAge}) || !got.Ended || over.outputEnd() != 99 {
		t.Errorf("%+v", got)
	}
	<-over.dead
	<-over.over
}

// Without a logged change, the age of a restored run counts from its start.
func TestTheAgeOfARestoredRun(t *testing.T) {
	l, _ := loggedLifecycle(t, Limits{MaxAge: time.Hour}, nil)
	l.restore(history{}, 2*time.Hour, true)
	if got := l.nextAction(sinceBoot()); got.end != ByMaxAge {
		t.Errorf("%+v", got)
	}
}
