package real

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Each scenario runs in a container, which names such as ErrNoBox call a box: a set of Linux namespaces, whose
// processes see only each other and a loopback interface. The first process in the container reaps orphans and starts
// the driver, which runs the scenario. When the driver ends, the kernel kills all processes in the container and
// unmounts all its file systems. So a scenario leaves nothing on the machine.

const (
	roleVar = "ORDEAL_ROLE"
	jobVar  = "ORDEAL_JOB"

	roleInit   = "init"
	roleDriver = "driver"

	exitNoBox = 77
)

// ErrNoBox is returned if the kernel does not let this user create namespaces.
var ErrNoBox = errors.New("no namespaces can be made here")

// RunIfChild checks whether a test started this process as a scripted agent, or as one of the processes that set up and
// load a container. If so, RunIfChild does the work of this process and exits. TestMain must call it first.
func RunIfChild() {
	beAgent()
	var err error
	switch os.Getenv(roleVar) {
	case roleInit:
		err = serveInit()
	case roleDriver:
		err = drive()
	case roleLoad:
		burn()
	default:
		return
	}
	switch {
	case errors.Is(err, ErrNoBox):
		fmt.Fprintln(os.Stderr, "ordeal:", err)
		os.Exit(exitNoBox)
	case err != nil:
		fmt.Fprintln(os.Stderr, "ordeal:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Execute runs a job in a new container and returns the report. The job writes files only to job.Dir.
func Execute(job Job) (Report, error) {
	raw, err := json.Marshal(job)
	if err != nil {
		return Report{}, err
	}
	log, err := os.Create(filepath.Join(job.Dir, "driver.log"))
	if err != nil {
		return Report{}, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVar + "=" + roleInit, jobVar + "=" + string(raw),
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "GORACE=atexit_sleep_ms=0"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	defer removeMemoryGroup(filepath.Base(job.Dir))
	began := time.Now()
	// Because of Pdeathsig, the kernel would kill the container when the thread that calls Start ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return Report{}, fmt.Errorf("%w: %w", ErrNoBox, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() == exitNoBox {
		text, _ := os.ReadFile(log.Name())
		return Report{}, fmt.Errorf("%w: %s", ErrNoBox, text)
	} else if err != nil {
		text, _ := os.ReadFile(log.Name())
		return Report{}, fmt.Errorf("the box of seed %d: %w: %s", job.Seed, err, text)
	}
	var report Report
	raw, err = os.ReadFile(filepath.Join(job.Dir, reportFile))
	if err == nil {
		err = json.Unmarshal(raw, &report)
	}
	report.Took = time.Since(began)
	return report, err
}

// serveInit runs the first process of a container. It mounts /proc, starts the driver, and reaps orphans until the
// driver ends.
func serveInit() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: keep mounts in the box: %w", ErrNoBox, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("%w: mount /proc: %w", ErrNoBox, err)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("%w: bring loopback up: %w", ErrNoBox, err)
	}
	if err := os.Setenv(roleVar, roleDriver); err != nil {
		return err
	}
	driver, err := os.StartProcess("/proc/self/exe", []string{"driver"},
		&os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case pid != driver.Pid:
		case status.ExitStatus() != 0:
			return fmt.Errorf("the driver ended with %d (signal %d)", status.ExitStatus(), status.Signal())
		default:
			return nil
		}
	}
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
