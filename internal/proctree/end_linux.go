package proctree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// HeadStart is how much earlier than its descendants the root is told to end, if it does not end sooner: it would
// take the end of a tool for the tool's own, and go on.
const HeadStart = 100 * time.Millisecond

// KillPatience is how long after the first SIGKILL the last process may take to vanish.
const KillPatience = 3 * time.Second

const (
	killRound    = 5 * time.Millisecond // wait between two rounds of SIGKILL
	firstPoll    = 500 * time.Microsecond
	slowestPoll  = 8 * time.Millisecond
	unsureLooks  = 5
	emptyLooks   = 3
	freezeRounds = 20
)

// End terminates every member: TERM, and KILL to whatever is left after grace or once ctx is done. It looks
// again until a look finds none, for a process may fork while we look, and until the kernel says that no process is left
// if it can: in the control group. Processes that outlive SIGKILL for three seconds are an error.
func (t *Tree) End(ctx context.Context, grace time.Duration) error {
	killAt := time.Now().Add(grace)
	termed := map[ID]bool{}
	var refused error
	for empty := 0; ; {
		live, err := t.look()
		if err != nil {
			return fmt.Errorf("look for processes: %w", err)
		}
		if len(live) == 0 && !t.held() {
			if empty++; empty >= t.proof() {
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
			return errors.Join(wouldNotEnd(live), refused)
		}
	}
}

func wouldNotEnd(live []procStat) error {
	if len(live) == 0 {
		return errors.New("processes would not end that cannot be seen from here")
	}
	return fmt.Errorf("%d processes would not end, the first is %d", len(live), live[0].PID)
}

// look lists the live members, and looks again while some process could not be judged.
func (t *Tree) look() (live []procStat, err error) {
	for range unsureLooks {
		var unsure int
		live, unsure, err = t.members()
		if err != nil || unsure == 0 || len(live) > 0 {
			return live, err
		}
		time.Sleep(firstPoll) // an exec takes no longer
	}
	return live, nil
}

// term asks every member to end, once each, the root first.
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
		_ = p.Signal(unix.SIGCONT) // a stopped process would sleep through it
		if p.ID == t.root && len(live) > 1 {
			t.await(ctx, live[i:i+1], min(HeadStart, time.Until(killAt)/2))
		}
	}
	return refused
}

// freeze stops the members before they are killed, when there are many: a place that a kill frees below a
// limit of processes is taken at once by the next fork, unless no process is left that can fork.
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

// kill sends SIGKILL to the control group as a whole, and to every member that is not in it.
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
		_ = p.Signal(unix.SIGKILL) // the count at the end includes a process that refuses
	}
}

// killGroup kills p's group in one step, which outruns a program that forks faster than we look. Every
// process of the group is a member: sessions are made by the program or by its descendants.
func killGroup(p procStat, self int) {
	own, ok := readProc(self)
	now, there := readProc(p.PID)
	if !ok || !there || now.ID != p.ID || now.session == own.session || now.group <= 1 {
		return
	}
	_ = unix.Kill(-now.group, unix.SIGKILL) // whom it misses, the next look finds
}

// await returns when none of live runs any more, after limit, or when ctx is done. When live is empty it waits a
// moment for the kernel to say so.
func (t *Tree) await(ctx context.Context, live []procStat, limit time.Duration) {
	unseen := len(live) == 0
	if unseen {
		limit = min(limit, slowestPoll)
	}
	deadline := time.Now().Add(limit)
	for pause := firstPoll; ; pause = min(2*pause, slowestPoll) {
		for len(live) > 0 && !alive(live[0].ID) {
			live = live[1:]
		}
		left := time.Until(deadline)
		if len(live) == 0 && !(unseen && t.held()) || left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, left)):
		}
	}
}
