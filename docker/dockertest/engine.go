package dockertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options configures an Engine.
type Options struct {
	Args []string // additional arguments of dockerd
	// Address is a TCP address of this machine, such as 127.0.0.1:2376, at which the engine also answers; "" for none.
	Address string
	// Disk is the size in bytes of a disk for the engine, which a test can fill up. 0 means the machine's disk.
	Disk int64
}

// Engine is an engine that only one test uses, separate from the machine's own engine.
type Engine struct {
	t    testing.TB
	opts Options
	dir  string
	cmd  *exec.Cmd
	log  *os.File
}

// Start starts an engine, and stops it at the end of the test. It needs root and dockerd.
func Start(t testing.TB, o Options) *Engine {
	t.Helper()
	if os.Getenv("DUCTOR_TEST_NO_DOCKER") != "" {
		t.Skip("the tests that need an engine were not asked for")
	}
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		LeaveOut(t, "an engine of the test's own needs dockerd and root")
	}
	dir, err := os.MkdirTemp("", "de") // a short name, because the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{t: t, dir: dir, opts: o}
	if o.Disk > 0 {
		e.mustRun("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", o.Disk), "tmpfs", e.mkdir("data"))
	}
	if e.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	e.Start()
	t.Cleanup(e.cleanUp)
	return e
}

func (e *Engine) mkdir(name string) string {
	e.t.Helper()
	dir := filepath.Join(e.dir, name)
	if err := os.Mkdir(dir, 0o711); err != nil {
		e.t.Fatal(err)
	}
	return dir
}

func (e *Engine) mustRun(name string, args ...string) {
	e.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		LeaveOut(e.t, "an engine of the test's own needs ", name, args, ": ", err, string(out))
	}
}

// Socket returns the path of the engine's socket.
func (e *Engine) Socket() string { return filepath.Join(e.dir, "sock") }

// Host returns the engine's address.
func (e *Engine) Host() string { return "unix://" + e.Socket() }

// Start starts or restarts the engine and waits until it answers. The engine has a network namespace of its own, so
// that it does not change the machine's bridges and addresses. If the addresses change, browsers in other tests cancel
// their requests. Only the socket for Options.Address is in the namespace of the test.
func (e *Engine) Start() {
	e.t.Helper()
	name := filepath.Base(e.dir)
	args := []string{
		"--data-root", e.dir + "/data", "--exec-root", e.dir + "/exec", "--pidfile", e.dir + "/pid", "--host", e.Host(),
		"--bridge", "none", "--iptables=false", "--ip-masq=false", "--containerd-namespace", name,
		"--containerd-plugins-namespace", name + "p",
	}
	e.cmd = exec.Command("unshare", "--net", "sh", "-c", `export LISTEN_PID=$$; exec dockerd "$@"`, "dockerd")
	if e.opts.Address != "" {
		socket := e.listen()
		defer socket.Close()
		e.cmd.ExtraFiles, e.cmd.Env = []*os.File{socket}, append(os.Environ(), "LISTEN_FDS=1")
		args = append(args, "--host", "fd://")
	}
	e.cmd.Args = append(e.cmd.Args, append(args, e.opts.Args...)...)
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	Eventually(e.t, "the test's own engine answers", func() bool {
		_, err := answers(e.Host())
		return err == nil
	})
}

// listen returns a socket that listens at Options.Address. dockerd inherits the socket, as with systemd's socket
// activation.
func (e *Engine) listen() *os.File {
	e.t.Helper()
	listener, err := net.Listen("tcp", e.opts.Address)
	if err != nil {
		e.t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		e.t.Fatal(err)
	}
	return socket
}

// Stop stops the engine with SIGTERM, as a user would.
func (e *Engine) Stop() {
	e.t.Helper()
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		e.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(40 * time.Second):
		_ = e.cmd.Process.Kill()
		<-done
		e.t.Error("the engine had to be killed")
	}
	e.cmd = nil
}

// Docker runs the docker program against this engine and returns its output.
func (e *Engine) Docker(args ...string) string {
	e.t.Helper()
	return On(e.t, e.Host(), args...)
}

func (e *Engine) cleanUp() {
	// If this fails, the engine has stopped.
	if ids, err := runDocker(e.Host(), "ps", "-aq"); err == nil && ids != "" {
		// Ignore the error, because the engine ends anyway.
		_, _ = runDocker(e.Host(), append([]string{"rm", "-f"}, strings.Fields(ids)...)...)
	}
	if e.cmd != nil { // nil if a test stopped the engine and then failed
		e.Stop()
	}
	// If the engine uses live restore, containerd is still running.
	if raw, err := os.ReadFile(e.dir + "/exec/containerd/containerd.pid"); err == nil {
		_ = exec.Command("kill", strings.TrimSpace(string(raw))).Run()
	}
	e.endShims()
	_ = e.log.Close()
	if e.t.Failed() {
		if raw, err := os.ReadFile(e.log.Name()); err == nil {
			e.t.Logf("the engine said: %s", raw[max(len(raw)-3000, 0):])
		}
	}
	Eventually(e.t, "the engine's files are gone", func() bool {
		_ = exec.Command("sh", "-c", "grep "+e.dir+" /proc/mounts | cut -d' ' -f2 | xargs -r umount -l").Run()
		return os.RemoveAll(e.dir) == nil
	})
}

// endShims kills the engine's containerd shims. If containers end while the engine is stopped, some shims remain.
func (e *Engine) endShims() {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid, so there is no error
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(args), "containerd-shim") ||
			!strings.Contains(string(args), e.dir+"/exec") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
