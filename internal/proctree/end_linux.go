package proctree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// HeadStart is how long End waits between SIGTERM to the root and SIGTERM to its descendants. An agent must receive the
// signal before its tools. If a tool ended first, the agent would regard this end as the tool's result, and continue.
const HeadStart = 100 * time.Millisecond

// KillPatience limits how long End sends SIGKILL before it returns an error.
const KillPatience = 3 * time.Second

const (
	killRound     = 5 * time.Millisecond // pause before End sends SIGKILL again
	firstPoll     = 500 * time.Microsecond
	maxPoll       = 8 * time.Millisecond
	unsureRetries = 5
	emptyScans    = 3
	freezeRounds  = 20
)

// End ends all members of the tree. It sends SIGTERM. When the grace period is over, or when ctx ends, it sends
// SIGKILL. A process may fork during a scan. So End scans again until it finds no member and, if the tree has a control
// group, the kernel reports this group as empty. End returns an error if a process survives SIGKILL for KillPatience.
func (t *Tree) End(ctx context.Context, grace time.Duration) error {
	killAt := time.Now().Add(grace)
	signaled := map[ID]bool{}
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
			refused = errors.Join(refused, t.term(ctx, live, signaled, killAt))
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

// liveMembers returns the live members. If it finds none, but could not inspect some process, it scans again.
func (t *Tree) liveMembers() (live []procStat, err error) {
	for range unsureRetries {
		var unsure int
		live, unsure, err = t.members()
		if err != nil || unsure == 0 || len(live) > 0 {
			return live, err
		}
		time.Sleep(firstPoll) // a process cannot be inspected during an exec, which takes less time than firstPoll
	}
	return live, nil
}

// term sends SIGTERM to the members, the root first. It skips members that the map signaled contains, and adds all
// others to this map. It returns the errors of the signals.
func (t *Tree) term(ctx context.Context, live []procStat, signaled map[ID]bool, killAt time.Time) error {
	var refused error
	for i, p := range live {
		if signaled[p.ID] {
			continue
		}
		signaled[p.ID] = true
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

// freeze stops many members with SIGSTOP before End kills them, so that a program that has reached its limit of
// processes cannot fork again after each kill.
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

// killGroup kills the process group of p in one step, because a program may fork faster than End can kill single
// processes. The root of the tree has created its own session. Only descendants of the root can be in this session, so
// the group contains no other program. If p is in the session of this process, killGroup does nothing, because the
// group may contain other programs.
func killGroup(p procStat, self int) {
	own, ok := readProc(self)
	now, there := readProc(p.PID)
	if !ok || !there || now.ID != p.ID || now.session == own.session || now.group <= 1 {
		return
	}
	_ = unix.Kill(-now.group, unix.SIGKILL) // if a process survives, the next scan finds it
}

// await waits until all live processes have ended, until ctx ends, or until the time limit is over. If live is empty,
// await waits a moment for the kernel to report an empty control group.
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
