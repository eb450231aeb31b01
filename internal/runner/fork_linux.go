package runner

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

// inputFD is where an agent holds the other end of its standard input. Programs that open files begin far below.
const inputFD = 200

// stub is what a child does between fork and exec. All of it is made before the fork: the child allocates nothing.
type stub struct {
	path, dir *byte
	argv, env **byte
	fds       [4]uintptr // become 0, 1, 2 and inputFD
	subreaper bool
	spare     int // a descriptor that was made for the child; -1 for none
	kernelLimits
	oomFile *byte
	failed  uintptr // written to where the exec fails; closed by a successful one
}

// kernelLimits are what the kernel grants an agent in another measure than the runner.
type kernelLimits struct {
	files *unix.Rlimit // open ones; nil leaves the runner's
	oom   []byte       // oom_score_adj; empty leaves the runner's
}

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// cloneArgs is the kernel's clone_args, as far as Linux 5.7 knows it.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// fork starts a program in a session of its own. It is in the group from its first moment, where the kernel can do
// that. An agent without one becomes the reaper of its own orphans, so that all that it starts stays below it. os/exec
// cannot do that: see docs/performance.md for the time that a detour through another program costs.
func fork(s Spec, in proctree.Group, fds [4]int, l kernelLimits) (pid int, err error) {
	st, err := newStub(s, l)
	if err != nil {
		return 0, err
	}
	if err := st.take(fds); err != nil {
		return 0, err
	}
	defer unix.Close(st.spare) // -1 is refused
	cgroup, groupErr := in.Open()
	if groupErr == nil {
		defer unix.Close(cgroup)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	if pipe[1] == inputFD {
		pipe[1], err = unix.FcntlInt(inputFD, unix.F_DUPFD_CLOEXEC, inputFD+1)
		_ = unix.Close(inputFD)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("prepare a descriptor: %w", err), unix.Close(pipe[0]))
		}
	}
	defer unix.Close(pipe[0])
	st.failed = uintptr(pipe[1])
	args := cloneArgs{exitSignal: uint64(unix.SIGCHLD)}
	pid, errno := 0, unix.EINVAL
	if groupErr == nil {
		args.flags, args.cgroup = unix.CLONE_INTO_CGROUP, uint64(cgroup)
		pid, errno = st.spawn(&args)
	}
	if errno != 0 { // there is no group, or the kernel refuses it
		args.flags, args.cgroup, st.subreaper = 0, 0, true
		pid, errno = st.spawn(&args)
	}
	_ = unix.Close(pipe[1])
	runtime.KeepAlive(st)
	if errno != 0 {
		return 0, fmt.Errorf("fork: %w", errno)
	}
	if err := execError(pipe[0]); err != nil {
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return 0, err
	}
	return pid, nil
}

// newStub prepares what needs memory.
func newStub(s Spec, l kernelLimits) (st *stub, err error) {
	st = &stub{kernelLimits: l, spare: -1}
	if st.oomFile, err = syscall.BytePtrFromString(oomFile); err != nil {
		return nil, err
	}
	if st.path, err = syscall.BytePtrFromString(s.Path); err != nil {
		return nil, err
	}
	if s.Dir != "" {
		if st.dir, err = syscall.BytePtrFromString(s.Dir); err != nil {
			return nil, err
		}
	}
	argv, err := syscall.SlicePtrFromStrings(append([]string{s.Path}, s.Args...))
	if err != nil {
		return nil, err
	}
	env, err := syscall.SlicePtrFromStrings(s.environment())
	if err != nil {
		return nil, err
	}
	st.argv, st.env = &argv[0], &env[0]
	return st, nil
}

// take gives the child its descriptors.
func (st *stub) take(fds [4]int) (err error) {
	for i, fd := range fds {
		if fd == inputFD { // what becomes inputFD must not be it already
			if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, inputFD+1); err != nil {
				return fmt.Errorf("prepare a descriptor: %w", err)
			}
			st.spare = fd
		}
		st.fds[i] = uintptr(fd)
	}
	return nil
}

// execError is why the child did not become the program; nil if it did.
func execError(pipe int) error {
	var errno [4]byte
	for {
		n, err := unix.Read(pipe, errno[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == len(errno) {
			return unix.Errno(*(*uint32)(unsafe.Pointer(&errno[0])))
		}
		return err
	}
}

// rawVfork makes the system call trap, of which both the parent and a child on the parent's stack may return.
func rawVfork(trap, a1, a2 uintptr) (r1, errno uintptr)

// rawFork is rawVfork for a child with memory of its own.
//
//go:nosplit
func rawFork(trap, a1, a2 uintptr) (r1, errno uintptr) {
	r1, _, e := syscall.RawSyscall6(trap, a1, a2, 0, 0, 0, 0)
	return r1, uintptr(e)
}

// vforkFlags have the parent wait until the child is the program, in the parent's memory, as Go itself does: nothing is
// copied. Where there is no rawVfork the child gets a copy.
func vforkFlags() uint64 {
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" {
		return unix.CLONE_VFORK | unix.CLONE_VM
	}
	return 0
}

// spawn forks, and runs the stub in the child.
func (st *stub) spawn(args *cloneArgs) (pid int, errno syscall.Errno) {
	args.flags |= vforkFlags()
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	r, e := st.child(args)
	afterFork()
	return int(r), syscall.Errno(e)
}

// child forks. The parent returns at once: the child has its own use for this frame.
//
//go:norace
//go:noinline
func (st *stub) child(args *cloneArgs) (pid, errno uintptr) {
	beforeFork()
	if args.flags&unix.CLONE_VM != 0 {
		pid, errno = rawVfork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args))
	} else {
		pid, errno = rawFork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args))
	}
	// before Linux 5.3, or a sandbox that does not know it
	if errno == uintptr(unix.ENOSYS) && args.flags&unix.CLONE_INTO_CGROUP == 0 {
		flags := uintptr(args.flags) | uintptr(unix.SIGCHLD)
		if args.flags&unix.CLONE_VM != 0 {
			pid, errno = rawVfork(unix.SYS_CLONE, flags, 0)
		} else {
			pid, errno = rawFork(unix.SYS_CLONE, flags, 0)
		}
	}
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	afterForkInChild()
	st.exec()
	return 0, 0 // never
}

// exec makes this child the program. Only raw system calls are allowed here: of the Go program this thread alone is there.
//
//go:norace
//go:nosplit
func (st *stub) exec() {
	_, _, errno := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	if errno == 0 && st.subreaper {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	}
	if errno == 0 { // so that the next runner may take the other end of our input from us
		// not every kernel has it
		_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0, 0)
	}
	if errno == 0 && st.dir != nil {
		_, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(st.dir)), 0, 0)
	}
	if errno == 0 && st.files != nil {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE,
			uintptr(unsafe.Pointer(st.files)), 0, 0, 0)
	}
	if errno == 0 && len(st.oom) > 0 {
		fd, _, failed := syscall.RawSyscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(st.oomFile)),
			unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if failed == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&st.oom[0])), uintptr(len(st.oom)))
		}
	}
	for i := uintptr(0); i < 4 && errno == 0; i++ { // no descriptor of ours is below 3
		to := i
		if i == 3 {
			to = inputFD
		}
		_, _, errno = syscall.RawSyscall(unix.SYS_DUP3, st.fds[i], to, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(st.path)),
			uintptr(unsafe.Pointer(st.argv)), uintptr(unsafe.Pointer(st.env)))
	}
	code := uint32(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, st.failed, uintptr(unsafe.Pointer(&code)), 4)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// agentsFiles is the limit of open files that this process was started with: Go raises its own, and agents are to have
// what they would have without us. nil where that cannot be found out.
func agentsFiles() *unix.Rlimit {
	out, err := exec.Command("sh", "-c", "ulimit -Sn; ulimit -Hn").Output() // Go gives a child what we were given
	f := strings.Fields(string(out))
	if err != nil || len(f) != 2 {
		return nil
	}
	var limit unix.Rlimit
	for i, to := range []*uint64{&limit.Cur, &limit.Max} {
		if f[i] == "unlimited" {
			*to = unix.RLIM_INFINITY
		} else if *to, err = strconv.ParseUint(f[i], 10, 64); err != nil {
			return nil
		}
	}
	return &limit
}
