package proctree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// HeadStart is how long End waits after it has sent SIGTERM to the root, before it signals the descendants. If a tool
// of an agent ended before the agent, the agent would regard that as the tool's result and continue.
const HeadStart = 100 * time.Millisecond

// KillPatience limits how long End sends SIGKILL before it returns an error.
const KillPatience = 3 * time.Second

const (
	killRound     = 5 * time.Millisecond // pause between two rounds of SIGKILL
	firstPoll     = 500 * time.Microsecond
	maxPoll       = 8 * time.Millisecond
	unsureRetries = 5
	emptyScans    = 3
	freezeRounds  = 20
)

// End ends all members of the tree. It sends SIGTERM, and when grace is over or ctx ends, SIGKILL. A process may fork
// during a scan, so End scans until it finds no member and the kernel reports an empty control group (if one exists).
// It returns an error if processes survive SIGKILL for KillPatience.
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

// liveMembers returns the live members. If it finds none but could not inspect some process, it tries again.
func (t *Tree) liveMembers() (live []procStat, err error) {
	for range unsureRetries {
		var unsure int
		live, unsure, err = t.members()
		if err != nil || unsure == 0 || len(live) > 0 {
			return live, err
		}
		time.Sleep(firstPoll) // a process that cannot be inspected is in an exec, which takes less time than this
	}
	return live, nil
}

// term sends SIGTERM to the members that are not in termed yet, the root first. It returns errors of signals.
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

// freeze sends SIGSTOP to the members before they are killed, if they are many. If a program has reached its limit of
// processes, each kill would let it fork again.
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

// kill sends SIGKILL to the whole control group, and to every member outside of it.
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

// killGroup kills the process group of p in one step, because a program may fork faster than processes can be killed
// one by one. All processes of the group are members: only the program and its descendants are in its sessions.
func killGroup(p procStat, self int) {
	own, ok := readProc(self)
	now, there := readProc(p.PID)
	if !ok || !there || now.ID != p.ID || now.session == own.session || now.group <= 1 {
		return
	}
	_ = unix.Kill(-now.group, unix.SIGKILL) // the next scan finds processes that this misses
}

// await returns when no process in live is running, after limit, or when ctx ends. If live is empty, it waits briefly
// until the kernel reports an empty control group.
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
