package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/sim/telegram"
)

const (
	abortTimes = 5
	benchGrace = 2 * time.Second // the default of agents.grace
)

// abortFigures are about the time from /abort to the death of the last process of a turn.
func abortFigures(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newSite(siteOptions{name: "abort", rates: noRates, people: 2})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	var obeys, ignores samples
	for range abortTimes {
		if obeys, err = s.addAbort(ctx, obeys, 1, `[[text "working"]] [[tool cmd="touch started; exec sleep 600"]]`); err != nil {
			return nil, err
		}
	}
	const stubborn = `[[text "working"]] [[ignore-term]] [[tool cmd="trap '' TERM INT; touch started; while :; do sleep 600; done"]]`
	if ignores, err = s.addAbort(ctx, ignores, 2, stubborn); err != nil {
		return nil, err
	}
	slow := ignores.within("the same, when they ignore SIGTERM", benchGrace+500*time.Millisecond)
	slow.target = "<= grace (2 s) + 0.5 s"
	return []figure{
		obeys.within("/abort in mid-turn to the last process dead", 50*time.Millisecond), slow,
	}, nil
}

// addAbort lets an agent begin something in a chat, aborts it, and adds how long its processes lived on.
func (s *site) addAbort(ctx context.Context, to samples, id int, prompt string) (samples, error) {
	chat := s.private(id)
	mark := filepath.Join(s.project, "started")
	_ = os.Remove(mark)
	chat.Person().Send(chat, prompt)
	for {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		if err := pauseFor(ctx, 5*time.Millisecond); err != nil {
			return to, fmt.Errorf("the agent does not begin: %w", err)
		}
	}
	if err := pauseFor(ctx, 100*time.Millisecond); err != nil { // a chain of programs may still start
		return to, err
	}
	watched, err := watchDir(s.project)
	if err != nil {
		return to, err
	}
	defer watched.close()
	sent := time.Now()
	chat.Person().Send(chat, "/abort")
	if err := watched.await(ctx); err != nil {
		return to, err
	}
	took := time.Since(sent)
	if left, err := livingBelow(s.project); err != nil || len(left) > 0 {
		return to, errors.Join(err, fmt.Errorf("processes %v outlived the abort", left))
	}
	_, err = chat.AwaitText(ctx, "Aborted")
	return append(to, took), err
}

// watched are processes whose death is waited for.
type watched []int // pidfds

// watchDir watches every process that works in dir.
func watchDir(dir string) (watched, error) {
	pids, err := livingBelow(dir)
	if err != nil {
		return nil, err
	}
	if len(pids) < 2 {
		return nil, fmt.Errorf("only processes %v work in the project: nothing to abort", pids)
	}
	var w watched
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("watch process %d: %w", pid, err)
		}
		w = append(w, fd)
	}
	return w, nil
}

func (w watched) close() {
	for _, fd := range w {
		unix.Close(fd)
	}
}

// await returns when all are dead.
func (w watched) await(ctx context.Context) error {
	for _, fd := range w {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("wait for a process: %w", err)
			}
			if n > 0 {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("processes outlive an abort: %w", context.Cause(ctx))
			}
		}
	}
	return nil
}

// livingBelow are the processes that work in dir; the dead that nobody has buried yet are left out.
func livingBelow(dir string) (pids []int, err error) {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || !strings.HasPrefix(at, dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// newFigures are about a chat that does not let go: whether its /new makes others wait. They are compared
// with what they wait when /new comes in a chat that is idle.
func newFigures(ctx context.Context, b *bench) ([]figure, error) {
	const times = 25
	s, err := b.newSite(siteOptions{name: "new", rates: noRates, people: 3})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.startWarm(ctx); err != nil {
		return nil, err
	}
	busy, idle, other := s.private(1), s.private(2), s.private(3)
	busy.Person().Send(busy, `[[ignore-term]] [[text "busy"]] [[tool cmd="trap '' TERM INT; sleep 600"]]`)
	if _, err := busy.AwaitText(ctx, "busy"); err != nil {
		return nil, err
	}
	var alone, beside samples
	for i := range times {
		for j, chat := range []*telegram.Chat{idle, busy} {
			chat.Person().Send(chat, "/new")
			_, took, err := s.firstText(ctx, other, 2*i+j+1)
			if err != nil {
				return nil, err
			}
			if j == 0 {
				alone = append(alone, took)
			} else {
				beside = append(beside, took)
			}
		}
	}
	busy.Person().Send(busy, "/abort")
	if _, err := busy.AwaitText(ctx, "Aborted"); err != nil {
		return nil, err
	}
	wait := max(beside.at(50)-alone.at(50), 0)
	return []figure{{
		what: "/new in a busy chat: what another chat waits for it", met: wait <= time.Millisecond,
		measured: fmt.Sprintf("p50 %s (first text %s, else %s)", ms(wait), ms(beside.at(50)), ms(alone.at(50))),
		target:   "nothing (<= 1 ms)",
	}}, nil
}
