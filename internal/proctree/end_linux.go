package proctree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// HeadStart is how long End waits for the root after SIGTERM before it signals the descendants. If a tool ended
// before the agent, the agent would use that as the tool's result and continue.
const HeadStart = 100 * time.Millisecond

// KillPatience limits how long the last process may take to disappear after the first SIGKILL.
const KillPatience = 3 * time.Second

const (
	killRound     = 5 * time.Millisecond // pause between two rounds of SIGKILL
	firstPoll     = 500 * time.Microsecond
	maxPoll       = 8 * time.Millisecond
	unsureRetries = 5
	emptyScans    = 3
	freezeRounds  = 20
)

// End sends SIGTERM to every member. After grace, or when ctx is done, it sends SIGKILL to the remaining members. A
// process may fork during a scan. So End scans until it finds no member and the kernel reports an empty control group
// (if one exists). It returns an error if processes survive SIGKILL for KillPatience.
func (t *Tree) End(ctx context.Context, grace time.Duration) error {
	killAt := time.Now().Add(grace)
	termed := map[ID]bool{}
	var refused error
	for empty := 0; ; {
		live, err := t.liveMembers()
		if err != nil {
			return fmt.Errorf("list processes: %w", err)
		}
		if len(live) == 0 && !t.groupPopulated() {
			if empty++; empty >= t.requiredScans() {
				return nil
			}
			time.Sleep(firstPoll)
			continue
		}
		empty = 0
		now := time.Now()
		if ctx.Err() != nil && now.Before(killAt) {
			killAt = now
		}
		switch {
		case now.Before(killAt):
			refused = errors.Join(refused, t.term(ctx, live, termed, killAt))
			t.await(ctx, live, time.Until(killAt))
		case now.Before(killAt.Add(KillPatience)):
			t.kill(live)
			t.await(context.WithoutCancel(ctx), live, killRound)
		default:
			return errors.Join(survivorsError(live), refused)
		}
	}
}

func survivorsError(live []procStat) error {
	if len(live) == 0 {
		return errors.New("processes that are invisible from here would not end")
	}
	return fmt.Errorf("%d processes would not end, the first is %d", len(live), live[0].PID)
}

// liveMembers lists the live members. While it cannot inspect some process, it retries.
func (t *Tree) liveMembers() (live []procStat, err error) {
	for range unsureRetries {
		var unsure int
		live, unsure, err = t.members()
		if err != nil || unsure == 0 || len(live) > 0 {
			return live, err
		}
		time.Sleep(firstPoll) // an exec takes less time
	}
	return live, nil
}

// term sends SIGTERM to every member that has not received it yet, the root first.
func (t *Tree) term(ctx context.Context, live []procStat, termed map[ID]bool, killAt time.Time) error {
	var refused error
	for i, p := range live {
		if termed[p.ID] {
			continue
		}
		termed[p.ID] = true
		if err := p.Signal(unix.SIGTERM); err != nil {
			refused = errors.Join(refused, fmt.Errorf("signal process %d: %w", p.PID, err))
		}
		_ = p.Signal(unix.SIGCONT) // a stopped process does not handle SIGTERM
		if p.ID == t.root && len(live) > 1 {
			t.await(ctx, live[i:i+1], min(HeadStart, time.Until(killAt)/2))
		}
	}
	return refused
}

// freeze stops the members before kill if they are many. If a program has reached its limit of processes, each kill
// allows another fork. So every member that can fork must be stopped before the first kill.
func (t *Tree) freeze(live []procStat) []procStat {
	const many = 32
	for range freezeRounds {
		if len(live) < many {
			break
		}
		moving := 0
		for _, p := range live {
			if !p.stopped() {
				moving++
				_ = p.Signal(unix.SIGSTOP)
			}
		}
		again, _, err := t.members()
		if err != nil || moving == 0 {
			break
		}
		live = again
	}
	return live
}

// kill sends SIGKILL to the control group, and to every member outside of it.
func (t *Tree) kill(live []procStat) {
	if in := t.cg.PIDs(); !t.inside && t.cg.Kill() == nil {
		live = slices.DeleteFunc(slices.Clone(live), func(p procStat) bool { return slices.Contains(in, p.PID) })
	}
	t.killEach(t.freeze(live))
}

func (t *Tree) killEach(live []procStat) {
	groups := map[int]bool{}
	for _, p := range live {
		if !groups[p.group] {
			groups[p.group] = true
			killGroup(p, t.self)
		}
		_ = p.Signal(unix.SIGKILL) // if a process survives, End reports it
	}
}

// killGroup kills p's process group in one step, because a program may fork faster than End can kill the processes one
// by one. All processes of the group are members, because only the program and its descendants create sessions.
func killGroup(p procStat, self int) {
	own, ok := readProc(self)
	now, there := readProc(p.PID)
	if !ok || !there || now.ID != p.ID || now.session == own.session || now.group <= 1 {
		return
	}
	_ = unix.Kill(-now.group, unix.SIGKILL) // the next scan finds processes that this misses
}

// await returns when no process in live is running, when limit has passed, or when ctx is done. If live is empty, it
// waits briefly for the kernel to report an empty control group.
func (t *Tree) await(ctx context.Context, live []procStat, limit time.Duration) {
	unseen := len(live) == 0
	if unseen {
		limit = min(limit, maxPoll)
	}
	deadline := time.Now().Add(limit)
	for pause := firstPoll; ; pause = min(2*pause, maxPoll) {
		for len(live) > 0 && !alive(live[0].ID) {
			live = live[1:]
		}
		left := time.Until(deadline)
		if len(live) == 0 && !(unseen && t.groupPopulated()) || left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, left)):
		}
	}
}
