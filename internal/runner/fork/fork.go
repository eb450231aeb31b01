// Package fork starts a program in its own session and, if possible, directly in a control group.
//
// os/exec is not sufficient, because it cannot call prctl(2) in the child. Two features need this call. First, a
// program without a control group must become the reaper of its orphaned descendants, so that they stay below it in the
// process tree. Second, the next runner must be allowed to take over the program's input. A helper program that calls
// prctl would cost time; see docs/performance.md.
package fork

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

// InputFD is the number of a descriptor in every started program: the write end of the program's standard input. The
// number is far above the descriptors that a program gets when it opens files.
const InputFD = 200

// OOMFile contains the oom_score_adj of the process that opens it.
const OOMFile = "/proc/self/oom_score_adj"

// Program is a program to start.
type Program struct {
	Path, Dir string
	Args      []string // arguments, without the name of the program
	Env       []string
}

// Limits are kernel settings for a program. A zero field means that the program inherits the setting from this process.
type Limits struct {
	Files       *unix.Rlimit // RLIMIT_NOFILE
	OOMScoreAdj []byte       // content of OOMFile
}

// stub contains the data that the child needs between fork and exec. The parent prepares the stub, because the child
// cannot allocate memory.
type stub struct {
	path, dir *byte
	argv, env **byte
	fds       [4]uintptr // descriptors that become the child's descriptors 0, 1, 2 and InputFD
	subreaper bool
	spare     int // descriptor that setFDs created and that Start must close, or -1
	limits    Limits
	oomFile   *byte
	failed    uintptr // pipe that receives the error number if exec fails; a successful exec closes it
}

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// cloneArgs is the kernel's struct clone_args, as of Linux 5.7.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// Start starts a program and returns its PID. The program gets fds as its descriptors 0, 1, 2 and InputFD. If the
// kernel supports it, the program starts in the control group. Otherwise the program becomes the reaper of its orphaned
// descendants. The caller must wait for the process.
func Start(p Program, group proctree.Group, fds [4]int, l Limits) (pid int, err error) {
	st, err := newStub(p, l)
	if err != nil {
		return 0, err
	}
	if err := st.setFDs(fds); err != nil {
		return 0, err
	}
	defer unix.Close(st.spare) // does nothing if spare is -1
	cgroup, groupErr := group.Open()
	if groupErr == nil {
		defer unix.Close(cgroup)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, fmt.Errorf("create a pipe: %w", err)
	}
	if pipe[1] == InputFD {
		pipe[1], err = unix.FcntlInt(InputFD, unix.F_DUPFD_CLOEXEC, InputFD+1)
		_ = unix.Close(InputFD)
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
	if errno != 0 { // there is no group, or the kernel does not support starting in one
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

// newStub allocates all memory that the child needs before it executes the program.
func newStub(p Program, l Limits) (st *stub, err error) {
	st = &stub{limits: l, spare: -1}
	if st.oomFile, err = syscall.BytePtrFromString(OOMFile); err != nil {
		return nil, err
	}
	if st.path, err = syscall.BytePtrFromString(p.Path); err != nil {
		return nil, err
	}
	if p.Dir != "" {
		if st.dir, err = syscall.BytePtrFromString(p.Dir); err != nil {
			return nil, err
		}
	}
	argv, err := syscall.SlicePtrFromStrings(append([]string{p.Path}, p.Args...))
	if err != nil {
		return nil, err
	}
	env, err := syscall.SlicePtrFromStrings(p.Env)
	if err != nil {
		return nil, err
	}
	st.argv, st.env = &argv[0], &env[0]
	return st, nil
}

func (st *stub) setFDs(fds [4]int) (err error) {
	for i, fd := range fds {
		if fd == InputFD { // dup3 fails for equal descriptors
			if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, InputFD+1); err != nil {
				return fmt.Errorf("prepare a descriptor: %w", err)
			}
			st.spare = fd
		}
		st.fds[i] = uintptr(fd)
	}
	return nil
}

// execError returns the error if the child failed before or during exec. pipe is the read end of stub.failed.
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

// rawVfork makes a system call that creates a child. The call first returns in the child. When the child has called
// exec or exited, the call also returns in the parent. Parent and child share the memory and the stack.
func rawVfork(trap, a1, a2 uintptr) (r1, errno uintptr)

// rawFork is like rawVfork, but the child gets its own copy of the memory.
//
//go:nosplit
func rawFork(trap, a1, a2 uintptr) (r1, errno uintptr) {
	r1, _, e := syscall.RawSyscall6(trap, a1, a2, 0, 0, 0, 0)
	return r1, uintptr(e)
}

// vforkFlags returns the flags that let the child run in the parent's memory while the parent waits until the child has
// called exec. This avoids copying the memory. Package syscall does the same. On platforms without rawVfork, vforkFlags
// returns 0, and the child gets a copy of the memory.
func vforkFlags() uint64 {
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" {
		return unix.CLONE_VFORK | unix.CLONE_VM
	}
	return 0
}

// spawn forks. The child calls st.exec, which executes the program.
func (st *stub) spawn(args *cloneArgs) (pid int, errno syscall.Errno) {
	args.flags |= vforkFlags()
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	r, e := st.child(args)
	afterFork()
	return int(r), syscall.Errno(e)
}

// child forks. The child process executes the program. The parent must return immediately, because the child uses the
// same stack frame.
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
	// clone3 may be missing: Linux before 5.3 does not support it, and sandboxes may forbid it.
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
	return 0, 0 // unreachable
}

// exec replaces the child with the program. It may only make raw system calls, because the child has only one of the Go
// program's threads.
//
//go:norace
//go:nosplit
func (st *stub) exec() {
	_, _, errno := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	if errno == 0 && st.subreaper {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	}
	if errno == 0 {
		// Allow every process to trace the program. The next runner needs this permission to copy the descriptor
		// InputFD. Some kernels do not support this.
		_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0, 0)
	}
	if errno == 0 && st.dir != nil {
		_, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(st.dir)), 0, 0)
	}
	if errno == 0 && st.limits.Files != nil {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE,
			uintptr(unsafe.Pointer(st.limits.Files)), 0, 0, 0)
	}
	if errno == 0 && len(st.limits.OOMScoreAdj) > 0 {
		fd, _, failed := syscall.RawSyscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(st.oomFile)),
			unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if failed == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&st.limits.OOMScoreAdj[0])),
				uintptr(len(st.limits.OOMScoreAdj)))
		}
	}
	// Replace the descriptors 0, 1 and 2, and then InputFD. All descriptors in st.fds are above 2, so no step closes a
	// descriptor that a later step needs.
	for i := uintptr(0); i < 4 && errno == 0; i++ {
		to := i
		if i == 3 {
			to = InputFD
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

// InheritedFileLimit returns the limit of open files that this process inherited, or nil if it is unknown. The Go
// runtime raises the limit of its own process, but programs that the runner starts should get the inherited limit.
func InheritedFileLimit() *unix.Rlimit {
	// Go restores the inherited limit for a child process, so a shell can print it.
	out, err := exec.Command("sh", "-c", "ulimit -Sn; ulimit -Hn").Output()
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
