package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	killPatience = 3 * time.Second      // how long after the first SIGKILL the last process may take to vanish
	killRound    = 5 * time.Millisecond // wait between two rounds of SIGKILL
	firstPoll    = 500 * time.Microsecond
	slowestPoll  = 8 * time.Millisecond
	unsureLooks  = 5
)

// end terminates every member: TERM, and KILL to whatever is left after grace or once ctx is done. It
// looks again until a look finds none, for a process may fork while we look.
func (t *procTree) end(ctx context.Context, grace time.Duration) error {
	return t.endThose(ctx, grace, t.members)
}

// finder lists processes that are alive; see procTree.members.
type finder func() (live []procStat, unsure int, err error)

// endThose is end for whatever find finds.
func (t *procTree) endThose(ctx context.Context, grace time.Duration, find finder) error {
	killAt := time.Now().Add(grace)
	termed := map[procID]bool{}
	var refused error
	for {
		live, err := find.look()
		if err != nil {
			return fmt.Errorf("look for processes: %w", err)
		}
		if len(live) == 0 {
			return nil
		}
		now := time.Now()
		if ctx.Err() != nil && now.Before(killAt) {
			killAt = now
		}
		switch {
		case now.Before(killAt):
			refused = errors.Join(refused, term(live, termed))
			t.await(ctx, live, killAt.Sub(now))
		case now.Before(killAt.Add(killPatience)):
			t.kill(live)
			t.await(context.WithoutCancel(ctx), live, killRound)
		default:
			return errors.Join(fmt.Errorf("%d processes would not end, the first is %d", len(live), live[0].pid), refused)
		}
	}
}

// look lists the live members, and looks again while some process could not be judged.
func (find finder) look() (live []procStat, err error) {
	for range unsureLooks {
		var unsure int
		live, unsure, err = find()
		if err != nil || unsure == 0 || len(live) > 0 {
			return live, err
		}
		time.Sleep(firstPoll) // an exec takes no longer
	}
	return live, nil
}

// term asks every member to end, once each.
func term(live []procStat, termed map[procID]bool) error {
	var refused error
	for _, p := range live {
		if termed[p.procID] {
			continue
		}
		termed[p.procID] = true
		if err := p.signal(unix.SIGTERM); err != nil {
			refused = errors.Join(refused, fmt.Errorf("signal process %d: %w", p.pid, err))
		}
		_ = p.signal(unix.SIGCONT) // a stopped process would sleep through it
	}
	return refused
}

func (t *procTree) kill(live []procStat) {
	groups := map[int]bool{}
	for _, p := range live {
		if !groups[p.group] {
			groups[p.group] = true
			killGroup(p, t.self)
		}
		_ = p.signal(unix.SIGKILL) // what refuses is counted at the end
	}
}

// await returns when none of live runs any more, after limit, or when ctx is done.
func (t *procTree) await(ctx context.Context, live []procStat, limit time.Duration) {
	deadline := time.Now().Add(limit)
	for pause := firstPoll; ; pause = min(2*pause, slowestPoll) {
		for len(live) > 0 && !t.alive(live[0].procID) {
			live = live[1:]
		}
		left := time.Until(deadline)
		if len(live) == 0 || left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, left)):
		}
	}
}
