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

// starting is a supervisor that waits for its spec.
type starting struct {
	conn net.Conn
	pid  int
}

// pool starts supervisors, keeps spare ones, and takes the exit status of those that end before us.
type pool struct {
	command []string
	want    int

	mu       sync.Mutex
	spares   []*starting
	children map[int]int // process id to pidfd, or to -1
	need     chan struct{}
	stop     chan struct{}
	once     sync.Once
	wg       sync.WaitGroup
}

func (p *pool) open(command []string, spares int) {
	p.command, p.want = command, spares
	p.children = map[int]int{}
	p.need, p.stop = make(chan struct{}, 1), make(chan struct{})
	if spares > 0 {
		p.wg.Go(p.refill)
	}
}

// refill keeps as many spares as are wanted. A spare that cannot be started is missed at a start only.
func (p *pool) refill() {
	for {
		for p.missing() {
			child, err := p.spawn()
			if err != nil {
				break
			}
			p.mu.Lock()
			p.spares = append(p.spares, child)
			p.mu.Unlock()
		}
		select {
		case <-p.need:
		case <-p.stop:
			return
		}
		select {
		case <-time.After(refillDelay):
		case <-p.stop:
			return
		}
	}
}

// ready adds a spare, if there is none.
func (p *pool) ready() error {
	p.mu.Lock()
	n := len(p.spares)
	p.mu.Unlock()
	if n > 0 {
		return nil
	}
	child, err := p.spawn()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.spares = append(p.spares, child)
	p.mu.Unlock()
	return nil
}

func (p *pool) missing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.spares) < p.want
}

// take gives a supervisor to use, a spare one if there is any.
func (p *pool) take() (child *starting, spare bool, err error) {
	p.reap()
	p.mu.Lock()
	if n := len(p.spares); n > 0 {
		child = p.spares[0]
		p.spares = append(p.spares[:0], p.spares[1:]...)
	}
	p.mu.Unlock()
	select {
	case p.need <- struct{}{}:
	default:
	}
	if child != nil {
		return child, true, nil
	}
	child, err = p.spawn()
	return child, false, err
}

// spawn starts a supervisor: in a session of its own, with no word of our environment but where to find
// things, and nothing of ours open but the socket on its standard input.
func (p *pool) spawn() (*starting, error) {
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
	pid, err := syscall.ForkExec(p.command[0], append([]string{"ductor"}, p.command[1:]...), &syscall.ProcAttr{
		Dir: "/", Env: supervisorEnv(),
		Files: []uintptr{theirs.Fd(), null.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.command[0], err), conn.Close())
	}
	p.mu.Lock()
	p.children[pid] = pidfd
	p.mu.Unlock()
	return &starting{conn: conn, pid: pid}, nil
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
func (p *pool) dismiss(child *starting) {
	_ = child.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ours := p.children[child.pid]; ours { // not reaped: the number is still its
		_ = unix.Kill(child.pid, unix.SIGTERM)
	}
}

// reap takes the exit status of children that are dead.
func (p *pool) reap() (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, pidfd := range p.children {
		if !reaped(pid, pidfd) {
			continue
		}
		if pidfd >= 0 {
			_ = unix.Close(pidfd)
		}
		delete(p.children, pid)
	}
	return len(p.children)
}

// reaped reads a child's exit status if it is dead, and says whether there is nothing more to take.
func reaped(pid, pidfd int) bool {
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
func (p *pool) close() {
	p.once.Do(func() { close(p.stop) })
	p.wg.Wait()
	p.mu.Lock()
	spares := p.spares
	p.spares = nil
	p.mu.Unlock()
	for _, child := range spares {
		_ = child.conn.Close() // it reads the end, and ends
	}
	for until := time.Now().Add(time.Second); len(spares) > 0 && time.Now().Before(until); {
		p.reap()
		if !p.owns(spares[0].pid) {
			spares = spares[1:]
			continue
		}
		time.Sleep(time.Millisecond)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, pidfd := range p.children { // they outlive us, and another process reaps them
		if pidfd >= 0 {
			_ = unix.Close(pidfd)
		}
		delete(p.children, pid)
	}
}

func (p *pool) owns(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ours := p.children[pid]
	return ours
}
