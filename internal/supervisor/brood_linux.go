package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// refillDelay keeps the start of the next spare out of the way of the agent that took the last one.
const refillDelay = 100 * time.Millisecond

// newborn is a supervisor that has not got its spec.
type newborn struct {
	conn net.Conn
	pid  int
}

// brood starts supervisors, keeps spare ones, and takes the exit status of those that end before us.
type brood struct {
	command []string
	want    int

	mu       sync.Mutex
	spares   []*newborn
	children map[int]int // process id to pidfd, or to -1
	need     chan struct{}
	stop     chan struct{}
	once     sync.Once
	wg       sync.WaitGroup
}

func (b *brood) open(command []string, spares int) {
	b.command, b.want = command, spares
	b.children = map[int]int{}
	b.need, b.stop = make(chan struct{}, 1), make(chan struct{})
	if spares > 0 {
		b.wg.Go(b.refill)
	}
}

// refill keeps as many spares as are wanted. A spare that cannot be started is missed at a start only.
func (b *brood) refill() {
	for {
		for b.missing() {
			child, err := b.spawn()
			if err != nil {
				break
			}
			b.mu.Lock()
			b.spares = append(b.spares, child)
			b.mu.Unlock()
		}
		select {
		case <-b.need:
		case <-b.stop:
			return
		}
		select {
		case <-time.After(refillDelay):
		case <-b.stop:
			return
		}
	}
}

// ready adds a spare, if there is none.
func (b *brood) ready() error {
	b.mu.Lock()
	n := len(b.spares)
	b.mu.Unlock()
	if n > 0 {
		return nil
	}
	child, err := b.spawn()
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.spares = append(b.spares, child)
	b.mu.Unlock()
	return nil
}

func (b *brood) missing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.spares) < b.want
}

// take gives a supervisor to use, a spare one if there is any.
func (b *brood) take() (child *newborn, spare bool, err error) {
	b.bury()
	b.mu.Lock()
	if n := len(b.spares); n > 0 {
		child = b.spares[0]
		b.spares = append(b.spares[:0], b.spares[1:]...)
	}
	b.mu.Unlock()
	select {
	case b.need <- struct{}{}:
	default:
	}
	if child != nil {
		return child, true, nil
	}
	child, err = b.spawn()
	return child, false, err
}

// spawn starts a supervisor: in a session of its own, with no word of our environment but where to find
// things, and nothing of ours open but the socket on its standard input.
func (b *brood) spawn() (*newborn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	mine := os.NewFile(uintptr(pair[0]), "supervisor")
	theirs := os.NewFile(uintptr(pair[1]), "client")
	defer mine.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, fmt.Errorf("use a socket: %w", err)
	}
	pidfd := -1
	pid, err := syscall.ForkExec(b.command[0], append([]string{"ductor"}, b.command[1:]...), &syscall.ProcAttr{
		Dir: "/", Env: supervisorEnv(),
		Files: []uintptr{theirs.Fd(), null.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", b.command[0], err), conn.Close())
	}
	b.mu.Lock()
	b.children[pid] = pidfd
	b.mu.Unlock()
	return &newborn{conn: conn, pid: pid}, nil
}

// supervisorEnv holds no secret, and keeps the runtime small.
func supervisorEnv() []string {
	env := []string{"GOMAXPROCS=2", "GOTRACEBACK=single"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// dismiss ends a supervisor that did not do what it was told, and the agent it may have started.
func (b *brood) dismiss(child *newborn) {
	_ = child.conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ours := b.children[child.pid]; ours { // not reaped: the number is still its
		_ = unix.Kill(child.pid, unix.SIGTERM)
	}
}

// bury takes the exit status of children that are dead.
func (b *brood) bury() (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid, pidfd := range b.children {
		if !buried(pid, pidfd) {
			continue
		}
		if pidfd >= 0 {
			_ = unix.Close(pidfd)
		}
		delete(b.children, pid)
	}
	return len(b.children)
}

// buried takes a child's exit status if it is dead, and says whether there is nothing more to take.
func buried(pid, pidfd int) bool {
	if pidfd < 0 { // a kernel without pidfd
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return got == pid || errors.Is(err, unix.ECHILD)
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, pidfd, &info, unix.WEXITED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0 || errors.Is(err, unix.ECHILD)
}

// close ends the spares and waits a moment for them. Supervisors with an agent are left alone.
// Idempotent.
func (b *brood) close() {
	b.once.Do(func() { close(b.stop) })
	b.wg.Wait()
	b.mu.Lock()
	spares := b.spares
	b.spares = nil
	b.mu.Unlock()
	for _, child := range spares {
		_ = child.conn.Close() // it reads the end, and ends
	}
	for until := time.Now().Add(time.Second); len(spares) > 0 && time.Now().Before(until); {
		b.bury()
		if !b.owns(spares[0].pid) {
			spares = spares[1:]
			continue
		}
		time.Sleep(time.Millisecond)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid, pidfd := range b.children { // they outlive us, and become another's to bury
		if pidfd >= 0 {
			_ = unix.Close(pidfd)
		}
		delete(b.children, pid)
	}
}

func (b *brood) owns(pid int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ours := b.children[pid]
	return ours
}
