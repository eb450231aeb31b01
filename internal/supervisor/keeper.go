package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	longestWait = 30 * time.Second // how late a deadline may be seen after the machine slept
	retryEnd    = 5 * time.Second  // after processes that would not die
)

// sinceBoot is a clock that cannot be set. It counts the time in which the machine sleeps.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // every Linux we run on has it
	}
	return time.Duration(t.Nano())
}

// duty is what the keeper has to do next.
type duty struct {
	leave bool   // nothing keeps the supervisor
	end   string // end the agent, on this behalf
	sweep bool   // end what the agent left
	at    time.Duration
}

// facts is what decides over the next duty. Times are by the server's clock.
type facts struct {
	now, ageFrom, idleFrom, exitedAt time.Duration
	limits                           Limits
	exited, owned, alone, collected  bool
}

// next says what is due now, or else when to look again.
func (f facts) next() duty {
	if f.exited && f.collected {
		return duty{leave: true}
	}
	d := duty{at: f.now + longestWait}
	due := func(from, after time.Duration) bool {
		if after < 0 {
			return false
		}
		d.at = min(d.at, from+after)
		return f.now >= from+after
	}
	idle := max(f.idleFrom, f.exitedAt)
	switch {
	case !f.exited && due(f.ageFrom, f.limits.MaxAge):
		d.end = ByMaxAge
	case !f.exited && !f.owned && due(f.idleFrom, f.limits.OrphanAfter):
		d.end = ByOrphaned
	case f.exited && !f.owned && !f.alone && due(idle, f.limits.LeftoverAfter):
		d.sweep = true
	case f.exited && !f.owned && due(idle, f.limits.KeepResult):
		d.leave = true
	}
	return d
}

func (s *server) facts() facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone := false
	select {
	case <-s.agent.alone:
		alone = true
	default:
	}
	return facts{
		now: s.clock(), ageFrom: s.ageFrom, idleFrom: s.idleFrom, exitedAt: s.exitedAt, limits: s.record.Limits,
		exited: s.exited, owned: s.owner != nil, alone: alone, collected: s.collected,
	}
}

// keep does what time or the absence of a client demands, until nothing keeps the supervisor.
func (s *server) keep(signals <-chan os.Signal) {
	for {
		f := s.facts()
		d := f.next()
		switch {
		case d.leave:
			_ = s.end("", 0) // what was left and never swept: it has no owner from here on
			return
		case d.end != "":
			if s.report(s.end(d.end, f.limits.Grace)) {
				<-s.noted // bounded by the drain of standard error
				continue
			}
			d.at = f.now + retryEnd
		case d.sweep:
			if s.report(s.end("", f.limits.Grace)) {
				<-s.agent.alone
				continue
			}
			d.at = f.now + retryEnd
		}
		timer := time.NewTimer(max(d.at-f.now, 0))
		select {
		case <-timer.C:
		case <-s.kick:
		case sig := <-signals:
			if !s.obey(sig, f.limits.Grace) {
				return
			}
		}
		timer.Stop()
	}
}

// obey says whether the supervisor stays.
func (s *server) obey(sig os.Signal, grace time.Duration) (stay bool) {
	switch sig {
	case syscall.SIGHUP: // a client found no socket
		s.report(s.relisten())
		return true
	case syscall.SIGTERM:
		if s.report(s.end(ByTerminated, grace)) {
			<-s.noted
		}
		return false
	}
	return true
}

// relisten makes the socket anew if it is gone.
func (s *server) relisten() error {
	if _, err := os.Lstat(filepath.Join(s.dir, socketFile)); err == nil {
		return nil
	}
	l, err := s.net.listen(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.listener
	s.listener = l
	s.mu.Unlock()
	_ = old.Close()
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// report notes an error, and says whether there was none.
func (s *server) report(err error) bool {
	if err != nil {
		s.noteTrouble(err)
	}
	return err == nil
}
