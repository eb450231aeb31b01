package supervisor

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// holdGrace is how long a place that is told to end waits for its runs. Container engines wait ten seconds.
const holdGrace = 8 * time.Second

// holdLook is how often it looks during that grace.
const holdLook = 20 * time.Millisecond

// hold is the first process of a place that has no other: it does nothing but take the exit status of whatever
// is left to it. Told to end, it passes that on and waits a while for all others.
func hold() error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	var over, again <-chan time.Time
	for {
		select {
		case <-again: // not all that ends here is ours to be told of
		case sig := <-signals:
			if sig != syscall.SIGCHLD && over == nil {
				if os.Getpid() != 1 { // everything this user runs would be meant
					return nil
				}
				over, again = time.After(holdGrace), time.Tick(holdLook)
				_ = unix.Kill(-1, unix.SIGTERM)
			}
		case <-over:
			return nil
		}
		if alone := reapAll(); alone && over != nil && unix.Kill(-1, 0) == unix.ESRCH {
			return nil
		}
	}
}

// reapAll takes every exit status there is, and says whether no child is left.
func reapAll() (alone bool) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return err != nil
		}
	}
}
