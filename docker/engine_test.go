package docker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownEngine is an engine of a test's own, beside the machine's: it may be stopped without anybody else noticing.
type ownEngine struct {
	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
	log  *os.File

	bridge string
}

// makeBridge makes a network for the engine: without one it would take away the machine's own engine's.
func (e *ownEngine) makeBridge() {
	e.t.Helper()
	for _, args := range [][]string{
		{"link", "add", e.bridge, "type", "bridge"}, {"addr", "add", "172.31.213.1/24", "dev", e.bridge}, {"link", "set", e.bridge, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			leaveOut(e.t, "an engine of the test's own needs a bridge: ", err, string(out))
		}
	}
	e.t.Cleanup(func() {
		if out, err := exec.Command("ip", "link", "del", e.bridge).CombinedOutput(); err != nil {
			e.t.Errorf("remove the bridge: %v: %s", err, out)
		}
	})
}

// startEngine starts an engine, which ends with the test. It needs root.
func startEngine(t testing.TB, args ...string) *ownEngine {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		leaveOut(t, "an engine of the test's own needs dockerd and root")
	}
	dir, err := os.MkdirTemp("", "de") // sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	e := &ownEngine{t: t, dir: dir, args: args, bridge: "d" + filepath.Base(dir)}
	e.makeBridge()
	if e.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	e.start()
	t.Cleanup(e.end)
	return e
}

func (e *ownEngine) socket() string { return "unix://" + filepath.Join(e.dir, "sock") }

// start starts the engine, or starts it anew.
func (e *ownEngine) start() {
	e.t.Helper()
	name := filepath.Base(e.dir)
	e.cmd = exec.Command("dockerd", append([]string{
		"--data-root", e.dir + "/data", "--exec-root", e.dir + "/exec", "--pidfile", e.dir + "/pid", "--host", e.socket(),
		"--bridge", e.bridge, "--iptables=false", "--ip-masq=false", "--containerd-namespace", name, "--containerd-plugins-namespace", name + "p",
	}, e.args...)...)
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	client := e.connect()
	eventually(e.t, "the test's own engine answers", func() bool { return client.Check(context.Background()) == nil })
}

func (e *ownEngine) connect() *Engine {
	e.t.Helper()
	client, err := Connect(EngineOptions{Host: e.socket()})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			e.t.Error(err)
		}
	})
	return client
}

// stop ends the engine as a person does.
func (e *ownEngine) stop() {
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
}

func (e *ownEngine) end() {
	for _, id := range strings.Fields(e.try("ps", "-aq")) {
		e.try("rm", "-f", id)
	}
	e.stop()
	if raw, err := os.ReadFile(e.dir + "/exec/containerd/containerd.pid"); err == nil { // by live restore it stays
		_ = exec.Command("kill", strings.TrimSpace(string(raw))).Run()
	}
	_ = e.log.Close()
	if e.t.Failed() {
		if raw, err := os.ReadFile(e.log.Name()); err == nil {
			e.t.Logf("the engine said: %s", lastWords(string(raw)))
		}
	}
	eventually(e.t, "the engine's files are gone", func() bool {
		_ = exec.Command("sh", "-c", "grep "+e.dir+" /proc/mounts | cut -d' ' -f2 | xargs -r umount -l").Run()
		return os.RemoveAll(e.dir) == nil
	})
}

func lastWords(s string) string { return s[max(len(s)-3000, 0):] }

// try runs docker's own program against this engine, whatever comes of it.
func (e *ownEngine) try(args ...string) string {
	out, _ := exec.Command("docker", append([]string{"--host", e.socket()}, args...)...).Output()
	return string(out)
}
